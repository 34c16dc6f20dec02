#include "bench/report.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace xce::bench {
namespace {

// About three digits, without an exponent.
std::string number(double value) {
  const double size = std::fabs(value);
  return absl::StrFormat("%.*f", size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
}

}  // namespace

void Report::add(Row row) { rows_.push_back(std::move(row)); }

void Report::skip(const std::string& id, const std::string& what, const std::string& why) {
  Row row;
  row.id = id;
  row.what = what;
  row.bound = why;
  rows_.push_back(std::move(row));
}

std::string Report::table() const {
  std::string out = absl::StrCat("\n", title_, "\n");
  for (const Row& row : rows_) {
    const bool measured = !row.unit.empty();
    absl::StrAppendFormat(&out, "\n%-9s%-52s %s", row.met ? (*row.met ? "met" : "MISSED") : "",
                          row.what,
                          measured ? absl::StrCat(number(row.value), " ", row.unit) : "skipped");
    if (!row.detail.empty()) absl::StrAppend(&out, "  (", row.detail, ")");
    if (row.ratio || !row.beside.empty()) {
      absl::StrAppendFormat(&out, "\n%61s ", "");
      if (row.ratio) absl::StrAppend(&out, number(*row.ratio), " x ");
      absl::StrAppend(&out, row.beside);
    }
    if (!row.target.empty()) absl::StrAppendFormat(&out, "\n%61s target %s", "", row.target);
    if (!row.bound.empty())
      absl::StrAppendFormat(&out, "\n%61s %s%s", "", measured ? "bound by " : "", row.bound);
  }
  out += "\n";
  return out;
}

std::string Report::json() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : rows_) {
    nlohmann::json out = {{"id", row.id}, {"what", row.what}};
    if (row.unit.empty()) {
      out["skipped"] = row.bound;
      rows.push_back(std::move(out));
      continue;
    }
    out["value"] = row.value;
    out["unit"] = row.unit;
    if (!row.detail.empty()) out["detail"] = row.detail;
    if (!row.beside.empty()) out["beside"] = row.beside;
    if (row.ratio) out["ratio"] = *row.ratio;
    if (!row.target.empty()) out["target"] = row.target;
    if (row.met) out["met"] = *row.met;
    if (!row.bound.empty()) out["bound"] = row.bound;
    rows.push_back(std::move(out));
  }
  nlohmann::json all = {
      {"title", title_}, {"cores", std::thread::hardware_concurrency()}, {"rows", rows}};
  return all.dump(2) + "\n";
}

absl::Status Report::write_json(const std::string& path) const {
  std::ofstream file(path, std::ios::trunc);
  file << json();
  file.close();
  return file.fail() ? absl::UnavailableError(absl::StrCat("cannot write ", path))
                     : absl::OkStatus();
}

}  // namespace xce::bench
