#include "cli/words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/parse.h"

namespace xce::cli {
namespace {

std::string coarse(int64_t seconds) {
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, "m");
  if (seconds < 2 * 86400) return absl::StrCat(seconds / 3600, "h");
  return absl::StrCat(seconds / 86400, "d");
}

// Length of the UTF-8 sequence that starts at text[i], or 0 when it is broken or a control
// character.
size_t sequence_length(std::string_view text, size_t i) {
  const unsigned char c = static_cast<unsigned char>(text[i]);
  if (c < 0x80) return c >= 0x20 && c != 0x7f ? 1 : 0;
  const size_t n = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
  if (n == 0 || c >= 0xf5 || i + n > text.size()) return 0;
  for (size_t k = 1; k < n; ++k) {
    if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return 0;
  }
  if (c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0)
    return 0;  // C1 control characters
  return n;
}

}  // namespace

std::string relative_time(int64_t now_ms, int64_t time_ms) {
  if (time_ms == 0) return "-";
  const int64_t seconds = (now_ms - time_ms) / 1000;
  if (seconds < 0) return "in " + coarse(-seconds);
  if (seconds == 0) return "now";
  return coarse(seconds) + " ago";
}

std::string iso_time(int64_t time_ms) {
  if (time_ms == 0) return "";
  int64_t days = time_ms / 86400000, ms = time_ms % 86400000;
  if (ms < 0) {
    ms += 86400000;
    --days;
  }
  // Days since the epoch to a civil date, after Howard Hinnant's chrono-compatible algorithms.
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t doe = days - era * 146097;
  const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const int64_t mp = (5 * doy + 2) / 153;
  const int64_t day = doy - (153 * mp + 2) / 5 + 1;
  const int64_t month = mp < 10 ? mp + 3 : mp - 9;
  const int64_t year = yoe + era * 400 + (month <= 2 ? 1 : 0);
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month, day, ms / 3600000,
                         ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

std::string clock_duration(int64_t ms) {
  const int64_t s = std::max<int64_t>(ms, 0) / 1000;
  const int64_t days = s / 86400;
  if (days > 0)
    return absl::StrFormat("%d-%02d:%02d:%02d", days, s / 3600 % 24, s / 60 % 60, s % 60);
  if (s >= 3600) return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
  return absl::StrFormat("%d:%02d", s / 60, s % 60);
}

std::string long_duration(int64_t ms) {
  if (ms < 1000) return absl::StrCat(std::max<int64_t>(ms, 0), " ms");
  if (ms < 60000) {
    return ms % 1000 < 100 ? absl::StrCat(ms / 1000, " s")
                           : absl::StrFormat("%d.%d s", ms / 1000, ms % 1000 / 100);
  }
  const auto two = [](int64_t a, const char* unit_a, int64_t b, const char* unit_b) {
    return b == 0 ? absl::StrCat(a, " ", unit_a)
                  : absl::StrCat(a, " ", unit_a, " ", b, " ", unit_b);
  };
  const int64_t s = ms / 1000;
  if (s < 3600) return two(s / 60, "min", s % 60, "s");
  if (s < 86400) return two(s / 3600, "h", s / 60 % 60, "min");
  return two(s / 86400, "d", s / 3600 % 24, "h");
}

std::string memory_words(uint64_t mb) {
  const char* unit = "M";
  uint64_t scale = 1;
  if (mb >= 1024ull * 1024) {
    unit = "T";
    scale = 1024ull * 1024;
  } else if (mb >= 1024) {
    unit = "G";
    scale = 1024;
  }
  const uint64_t tenths = (mb * 10 + scale / 2) / scale;
  return tenths % 10 == 0 ? absl::StrCat(tenths / 10, unit)
                          : absl::StrCat(tenths / 10, ".", tenths % 10, unit);
}

std::string exit_code_words(int exit_code, uint32_t exit_signal) {
  if (exit_signal != 0)
    return absl::StrCat(exit_code, " (killed by ", signal_name(exit_signal), ")");
  if (exit_code == 127) return "127 (command not found)";
  if (exit_code == 126) return "126 (command could not be executed)";
  if (exit_code > 128 && exit_code <= 192) {
    return absl::StrCat(exit_code, " (as after ",
                        signal_name(static_cast<uint32_t>(exit_code - 128)), ")");
  }
  return absl::StrCat(exit_code);
}

std::string count_words(uint64_t n, std::string_view one, std::string_view many) {
  return absl::StrCat(n, " ", std::string(n == 1 ? one : many));
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t n = sequence_length(text, i);
    if (n == 0) {
      out += '?';
      ++i;
    } else {
      out.append(text.substr(i, n));
      i += n;
    }
  }
  return out;
}

void RangeWriter::flush(std::string* out) const {
  if (!any_) return;
  if (!out->empty()) *out += ',';
  absl::StrAppend(out, first_);
  if (last_ != first_) absl::StrAppend(out, last_ == first_ + 1 ? "," : "-", last_);
}

void RangeWriter::add(uint32_t n) {
  if (any_ && n == last_ + 1) {
    last_ = n;
    return;
  }
  flush(&done_);
  any_ = true;
  first_ = last_ = n;
}

std::string RangeWriter::str() const {
  std::string out = done_;
  flush(&out);
  return out;
}

}  // namespace xce::cli
