#include "e2e/soak/stream.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libxce/model/types.h"

namespace xce::e2e {
namespace {

constexpr milliseconds kBetweenConnections{100};
constexpr milliseconds kBetweenLooks{30};
constexpr int kConnectS = 5;

}  // namespace

StreamReader::StreamReader(Http http, std::string dir,
                           std::function<std::map<uint64_t, JobRow>()> list)
    : http_(std::move(http)), dir_(std::move(dir)), list_(std::move(list)) {
  std::filesystem::create_directories(dir_);
}

void StreamReader::start() {
  thread_ = std::thread([this] { run(); });
}

void StreamReader::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void StreamReader::run() {
  for (int number = 0; !stopping_; ++number) {
    follow(number);
    wait_until([this] { return stopping_.load(); }, kBetweenConnections);
  }
}

// One connection, from its begin to its end.
void StreamReader::follow(int number) {
  const std::string file = absl::StrCat(dir_, "/stream-", number);
  std::vector<std::string> args = http_.curl_args();
  args.insert(args.begin(), "/usr/bin/curl");
  args.insert(args.end(), {"-N", "-i", "--connect-timeout", absl::StrCat(kConnectS)});
  if (!last_id_.empty()) args.insert(args.end(), {"-H", "Last-Event-ID: " + last_id_});
  args.push_back(http_.url("/api/v1/events"));
  Process curl;
  if (!curl.start(args, file).ok()) return;
  std::ifstream in;
  std::string line;
  for (bool over = false; !over;) {
    // What is read after the end was seen is the rest.
    over = stopping_ || !curl.alive();
    if (!in.is_open()) in.open(file);
    in.clear();
    for (std::string part; std::getline(in, part);) {
      line += part;
      if (in.eof()) break;  // no end of line yet
      take_line(line);
      line.clear();
    }
    if (list_wanted_) list_anew();
    if (!over) wait_until([&] { return stopping_.load(); }, kBetweenLooks);
  }
  curl.kill9();
  std::filesystem::remove(file);
}

void StreamReader::take_line(const std::string& line) {
  absl::string_view rest = line;
  if (absl::ConsumePrefix(&rest, "HTTP/1.1 ")) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.connections;
    if (absl::StartsWith(rest, "200")) {
      // Only now that events are coming: what ends from here on is told.
      list_wanted_ = list_wanted_ || last_id_.empty();
      counts_.resumes += !last_id_.empty();
    } else if (absl::StartsWith(rest, "410")) {
      ++counts_.gone;
      last_id_.clear();
    }
  } else if (absl::ConsumePrefix(&rest, "id: ")) {
    last_id_ = std::string(absl::StripSuffix(rest, "\r"));
  } else if (absl::ConsumePrefix(&rest, "data: ")) {
    take_data(std::string(rest));
  }
}

void StreamReader::take_data(const std::string& text) {
  const nlohmann::json event = nlohmann::json::parse(text, nullptr, false);
  if (!event.is_object()) return;
  const std::string kind = event.value("kind", "");
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.events;
  if (kind == "gap") {
    ++counts_.gaps;
    list_wanted_ = true;
  }
  const auto job = event.find("job");
  if (kind == "job" && job != event.end() && job->is_object())
    states_[job->value("id", uint64_t{0})] = job->value("state", "");
}

void StreamReader::list_anew() {
  list_wanted_ = false;
  const std::map<uint64_t, JobRow> all = list_();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.listings;
  for (const auto& [id, job] : all) states_[id] = name_of(static_cast<JobState>(job.state));
}

std::vector<std::string> StreamReader::wait_for(const std::map<uint64_t, JobRow>& jobs,
                                                milliseconds limit) const {
  std::vector<std::string> missing;
  wait_until(
      [&] {
        missing.clear();
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& [id, job] : jobs) {
          const auto known = states_.find(id);
          const std::string told = known == states_.end() ? "unknown" : known->second;
          const std::string is = name_of(static_cast<JobState>(job.state));
          if (told != is) missing.push_back(absl::StrCat("job ", id, " is ", is, ", not ", told));
        }
        return missing.empty();
      },
      limit);
  return missing;
}

StreamCounts StreamReader::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace xce::e2e
