#include "cli/when.h"

#include <time.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/parse.h"

namespace xce::cli {
namespace {

tm local_of(int64_t ms) {
  const time_t seconds = ms / 1000;
  tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

int64_t ms_of(tm parts, bool utc) {
  parts.tm_isdst = -1;
  return int64_t{utc ? ::timegm(&parts) : ::mktime(&parts)} * 1000;
}

// "14:30" or "14:30:05" and nothing behind it.
bool read_clock(const char* text, tm* parts) {
  int hour = 0, minute = 0, second = 0, end = -1;
  const int n = std::sscanf(text, "%2d:%2d%n:%2d%n", &hour, &minute, &end, &second, &end);
  if (n < 2 || end < 0 || text[end] != '\0') return false;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return false;
  parts->tm_hour = hour;
  parts->tm_min = minute;
  parts->tm_sec = second;
  return true;
}

bool read_date(const std::string& text, tm* parts, size_t* used) {
  int year = 0, month = 0, day = 0, end = -1;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &end) != 3 || end < 0)
    return false;
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31) return false;
  *parts = tm{};
  parts->tm_year = year - 1900;
  parts->tm_mon = month - 1;
  parts->tm_mday = day;
  *used = static_cast<size_t>(end);
  return true;
}

}  // namespace

absl::StatusOr<int64_t> parse_when(std::string_view text, int64_t now_ms) {
  if (text == "now") return now_ms;
  tm midnight = local_of(now_ms);
  midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
  if (text == "today") return ms_of(midnight, false);
  if (text == "yesterday") {
    --midnight.tm_mday;
    return ms_of(midnight, false);
  }
  const char last = text.empty() ? '\0' : text.back();
  if (last == 's' || last == 'm' || last == 'h' || last == 'd') {
    const auto ago_s = parse_duration_s(text);
    if (!ago_s.ok()) return ago_s.status();
    return now_ms - int64_t{*ago_s} * 1000;
  }
  std::string rest(text);
  if (read_clock(rest.c_str(), &midnight)) return ms_of(midnight, false);
  tm parts{};
  size_t used = 0;
  const bool utc = last == 'Z';
  if (utc) rest.pop_back();
  if (read_date(rest, &parts, &used)) {
    if (used == rest.size()) return ms_of(parts, utc);
    if ((rest[used] == ' ' || rest[used] == 'T') && read_clock(rest.c_str() + used + 1, &parts))
      return ms_of(parts, utc);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(text),
                   "' is no time: write 2h (ago), today, yesterday, 14:30, 2026-11-30 or "
                   "'2026-11-30 14:30'"));
}

}  // namespace xce::cli
