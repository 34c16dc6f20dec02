#include "cli/parse.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace xce::cli {
namespace {

// Debian's abseil has a string_view of its own.
absl::string_view view(std::string_view s) { return absl::string_view(s.data(), s.size()); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Digits only, no sign, no overflow past `max`.
bool read_digits(std::string_view text, uint64_t max, uint64_t* out) {
  if (text.empty()) return false;
  uint64_t value = 0;
  for (char c : text) {
    if (!is_digit(c)) return false;
    const uint64_t digit = static_cast<uint64_t>(c - '0');
    if (value > (max - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

constexpr uint64_t kMaxSeconds = std::numeric_limits<uint32_t>::max();

absl::Status bad_duration(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", view(text),
                   "' is no duration; write seconds (90), M:S (1:30), H:M:S (1:00:00), "
                   "D-H:M:S (1-00:00:00) or units (10m, 2h)"));
}

// "H:M:S", "M:S" or "S"; after a day part the first field is hours.
bool read_colons(std::string_view text, bool after_days, uint64_t* seconds) {
  std::vector<uint64_t> fields;
  size_t at = 0;
  while (true) {
    const size_t colon = text.find(':', at);
    uint64_t value;
    if (!read_digits(text.substr(at, colon == std::string_view::npos ? colon : colon - at),
                     kMaxSeconds, &value)) {
      return false;
    }
    fields.push_back(value);
    if (colon == std::string_view::npos) break;
    at = colon + 1;
  }
  if (fields.size() > 3) return false;
  if (after_days) fields.resize(3, 0);
  *seconds = 0;
  for (uint64_t field : fields) *seconds = *seconds * 60 + field;
  return true;
}

// "1h30m", "90s", "1d".
bool read_units(std::string_view text, uint64_t* seconds) {
  *seconds = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    uint64_t value;
    if (end == text.size() || !read_digits(text.substr(at, end - at), kMaxSeconds, &value))
      return false;
    const char unit = text[end];
    const uint64_t scale = unit == 's'   ? 1
                           : unit == 'm' ? 60
                           : unit == 'h' ? 3600
                           : unit == 'd' ? 86400
                                         : 0;
    if (scale == 0) return false;
    *seconds += value * scale;
    at = end + 1;
  }
  return true;
}

struct SignalName {
  const char* name;
  uint32_t number;
};
// Linux on the machines that XCE runs on.
constexpr SignalName kSignals[] = {
    {"HUP", 1},   {"INT", 2},    {"QUIT", 3},  {"ILL", 4},   {"TRAP", 5},  {"ABRT", 6},
    {"BUS", 7},   {"FPE", 8},    {"KILL", 9},  {"USR1", 10}, {"SEGV", 11}, {"USR2", 12},
    {"PIPE", 13}, {"ALRM", 14},  {"TERM", 15}, {"CHLD", 17}, {"CONT", 18}, {"STOP", 19},
    {"TSTP", 20}, {"TTIN", 21},  {"TTOU", 22}, {"URG", 23},  {"XCPU", 24}, {"XFSZ", 25},
    {"PROF", 27}, {"WINCH", 28}, {"SYS", 31},
};

}  // namespace

absl::StatusOr<uint32_t> parse_duration_s(std::string_view text) {
  const std::string word = lower(text);
  if (word.empty()) return bad_duration(text);
  uint64_t seconds = 0;
  const size_t dash = word.find('-');
  if (dash != std::string::npos) {
    uint64_t days, rest;
    if (!read_digits(std::string_view(word).substr(0, dash), 100000, &days) ||
        !read_colons(std::string_view(word).substr(dash + 1), true, &rest)) {
      return bad_duration(text);
    }
    seconds = days * 86400 + rest;
  } else if (is_digit(word.back())) {
    if (!read_colons(word, false, &seconds)) return bad_duration(text);
  } else if (!read_units(word, &seconds)) {
    return bad_duration(text);
  }
  if (seconds == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("'", view(text), "' must be at least one second"));
  if (seconds > kMaxSeconds) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", view(text), "' is longer than the 136 years that XCE counts"));
  }
  return static_cast<uint32_t>(seconds);
}

absl::StatusOr<int64_t> parse_duration_ms(std::string_view text) {
  if (text.size() > 2 && lower(text.substr(text.size() - 2)) == "ms") {
    uint64_t ms;
    if (!read_digits(text.substr(0, text.size() - 2), std::numeric_limits<int32_t>::max(), &ms) ||
        ms == 0) {
      return bad_duration(text);
    }
    return static_cast<int64_t>(ms);
  }
  const size_t dot = text.find('.');
  if (dot != std::string_view::npos) {  // "0.2", "1.5s"
    std::string fraction(text.substr(dot + 1));
    if (!fraction.empty() && (fraction.back() == 's' || fraction.back() == 'S'))
      fraction.pop_back();
    uint64_t whole, ms;
    if (fraction.empty() || fraction.size() > 3 ||
        !read_digits(text.substr(0, dot), 1000000, &whole)) {
      return bad_duration(text);
    }
    fraction.resize(3, '0');
    if (!read_digits(fraction, 999, &ms) || whole * 1000 + ms == 0) return bad_duration(text);
    return static_cast<int64_t>(whole * 1000 + ms);
  }
  const absl::StatusOr<uint32_t> seconds = parse_duration_s(text);
  if (!seconds.ok()) return seconds.status();
  return static_cast<int64_t>(*seconds) * 1000;
}

absl::StatusOr<uint64_t> parse_memory_mb(std::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "'", view(text),
      "' is no amount of memory; write MiB (512) or a unit (300K, 512M, 2G, 1.5G, 1T)"));
  std::string word = lower(text);
  for (const char* ending : {"ib", "b"}) {
    const std::string_view suffix(ending);
    if (word.size() > suffix.size() + 1 &&
        word.compare(word.size() - suffix.size(), suffix.size(), ending) == 0) {
      word.resize(word.size() - suffix.size());
      if (is_digit(word.back())) return bad;  // "512b": bytes are no unit here
      break;
    }
  }
  uint64_t kib = 1024;  // of one unit; plain numbers are MiB
  if (!word.empty() && !is_digit(word.back())) {
    const char unit = word.back();
    kib = unit == 'k'   ? 1
          : unit == 'm' ? 1024
          : unit == 'g' ? 1024 * 1024
          : unit == 't' ? 1024ull * 1024 * 1024
                        : 0;
    if (kib == 0) return bad;
    word.pop_back();
  }
  const size_t dot = word.find('.');
  uint64_t whole = 0, thousandths = 0;
  if (!read_digits(word.substr(0, dot), 1ull << 32, &whole)) return bad;
  if (dot != std::string::npos) {
    std::string fraction = word.substr(dot + 1);
    if (fraction.empty() || fraction.size() > 3) return bad;
    fraction.resize(3, '0');
    if (!read_digits(fraction, 999, &thousandths)) return bad;
  }
  const uint64_t total_kib = whole * kib + (thousandths * kib + 999) / 1000;
  if (total_kib == 0 || total_kib / 1024 > (1ull << 40)) return bad;
  return (total_kib + 1023) / 1024;
}

absl::StatusOr<int64_t> parse_number(std::string_view text, int64_t min, int64_t max) {
  const bool negative = !text.empty() && text[0] == '-';
  uint64_t magnitude;
  int64_t value = 0;
  bool ok = read_digits(negative ? text.substr(1) : text, std::numeric_limits<int64_t>::max(),
                        &magnitude);
  if (ok) {
    value = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
    ok = value >= min && value <= max;
  }
  if (!ok) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", view(text), "' is no whole number from ", min, " to ", max));
  }
  return value;
}

absl::StatusOr<ArraySpec> parse_array(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("array '", view(text), "': ", view(why),
                     "; write 0-9, 1,3,5, 0-9:2, and %4 for at most 4 at once"));
  };
  ArraySpec spec;
  std::string_view list = text;
  const size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    uint64_t limit;
    if (!read_digits(text.substr(percent + 1), std::numeric_limits<uint32_t>::max(), &limit) ||
        limit == 0) {
      return bad("the number after % must be 1 or more");
    }
    spec.limit = static_cast<uint32_t>(limit);
    list = text.substr(0, percent);
  }
  constexpr uint64_t kMaxIndex = std::numeric_limits<int32_t>::max();
  size_t at = 0;
  while (at <= list.size()) {
    const size_t comma = std::min(list.find(',', at), list.size());
    std::string_view part = list.substr(at, comma - at);
    at = comma + 1;
    uint64_t first, last, step = 1;
    const size_t colon = part.find(':');
    if (colon != std::string_view::npos) {
      if (!read_digits(part.substr(colon + 1), kMaxIndex, &step) || step == 0)
        return bad("the step must be 1 or more");
      part = part.substr(0, colon);
    }
    const size_t dash = part.find('-');
    if (!read_digits(part.substr(0, dash), kMaxIndex, &first))
      return bad("no index where one should be");
    last = first;
    if (dash != std::string_view::npos && !read_digits(part.substr(dash + 1), kMaxIndex, &last)) {
      return bad("a range has no end");
    }
    if (dash == std::string_view::npos && colon != std::string_view::npos)
      return bad("a step needs a range");
    if (last < first) return bad("a range ends before it begins");
    if ((last - first) / step >= kMaxArrayTasks - spec.indices.size()) {
      return bad(absl::StrCat("more than ", kMaxArrayTasks, " tasks"));
    }
    for (uint64_t i = first; i <= last; i += step) spec.indices.push_back(static_cast<uint32_t>(i));
  }
  std::sort(spec.indices.begin(), spec.indices.end());
  if (std::adjacent_find(spec.indices.begin(), spec.indices.end()) != spec.indices.end()) {
    return bad("an index is there twice");
  }
  return spec;
}

absl::StatusOr<JobRef> parse_job_ref(std::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "'", view(text), "' is no job id; write 17 for a job or an array, 17[3] or 17_3 for a task"));
  JobRef ref;
  const size_t mark = text.find_first_of("[_");
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (!read_digits(text.substr(0, mark), kMax, &ref.id) || ref.id == 0) return bad;
  if (mark == std::string_view::npos) return ref;
  std::string_view inner = text.substr(mark + 1);
  if (text[mark] == '[') {
    if (inner.size() < 2 || inner.back() != ']') return bad;
    inner.remove_suffix(1);
  }
  const absl::StatusOr<ArraySpec> spec = parse_array(inner);
  if (!spec.ok() || spec->limit != 0) return bad;
  ref.indices = spec->indices;
  return ref;
}

std::string format_job_id(uint64_t id, uint64_t array_id, uint32_t array_index) {
  return array_id == 0 ? absl::StrCat(id) : absl::StrCat(array_id, "[", array_index, "]");
}

absl::StatusOr<std::vector<std::pair<std::string, uint32_t>>> parse_gres(std::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("'", view(text), "' names no resources; write gpu, gpu:2 or gpu:1,license:3"));
  std::vector<std::pair<std::string, uint32_t>> out;
  for (const std::string& part : split_commas(text)) {
    const size_t colon = part.rfind(':');
    const std::string name = part.substr(0, colon);
    uint64_t count = 1;
    if (name.empty() || name.find_first_of(": \t=") != std::string::npos) return bad;
    if (colon != std::string::npos &&
        (!read_digits(part.substr(colon + 1), std::numeric_limits<uint32_t>::max(), &count) ||
         count == 0)) {
      return bad;
    }
    for (const auto& [other, unused] : out) {
      if (other == name) return bad;
    }
    out.emplace_back(name, static_cast<uint32_t>(count));
  }
  if (out.empty()) return bad;
  return out;
}

absl::StatusOr<uint32_t> parse_signal(std::string_view text) {
  uint64_t number;
  if (read_digits(text, 64, &number) && number > 0) return static_cast<uint32_t>(number);
  std::string word = lower(text);
  if (word.rfind("sig", 0) == 0) word = word.substr(3);
  for (const SignalName& signal : kSignals) {
    if (lower(signal.name) == word) return signal.number;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", view(text), "' is no signal; write TERM, KILL, USR1, ... or a number"));
}

std::string signal_name(uint32_t signal) {
  for (const SignalName& known : kSignals) {
    if (known.number == signal) return absl::StrCat("SIG", known.name);
  }
  return absl::StrCat("signal ", signal);
}

absl::StatusOr<Warning> parse_warning(std::string_view text) {
  const size_t at = text.find('@');
  const auto signal = parse_signal(text.substr(0, at));
  const auto before =
      parse_duration_s(at == std::string_view::npos ? std::string_view("60") : text.substr(at + 1));
  if (!signal.ok() || !before.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", view(text),
        "' is no warning; write USR1@30 for SIGUSR1 30 seconds before the time limit"));
  }
  return Warning{*signal, *before};
}

absl::StatusOr<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote == '"' && i + 1 < text.size() &&
                 (text[i + 1] == '"' || text[i + 1] == '\\')) {
        word += text[++i];
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else if (c == '#' && !in_word) {
      break;
    } else {
      if (c == '\\' && i + 1 < text.size()) ++i;
      word += text[i];
      in_word = true;
    }
  }
  if (quote != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("a ", std::string(1, quote), " is never closed"));
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t change = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> out;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) out.emplace_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

}  // namespace xce::cli
