#include "cli/script.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/parse.h"

namespace xce::cli {
namespace {

constexpr std::string_view kMark = "#XCE";

bool is_directive(std::string_view line) {
  return line.substr(0, kMark.size()) == kMark &&
         (line.size() == kMark.size() || line[kMark.size()] == ' ' || line[kMark.size()] == '\t' ||
          line[kMark.size()] == '\r');
}

}  // namespace

absl::Status check_script(std::string_view name, std::string_view bytes, size_t max_bytes) {
  const std::string who(name);
  if (bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " is empty; write a script that begins with #!/bin/sh"));
  }
  if (bytes.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " has more than ", max_bytes,
                     " bytes, the limit for a script; "
                     "keep its data in a file that the script reads"));
  }
  if (bytes.substr(0, 4) ==
          "\x7f"
          "ELF" ||
      bytes.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " is a program, not a script; run it with 'xce submit -- ", who, "'"));
  }
  if (bytes.substr(0, 2) != "#!") {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " has no #! line; make #!/bin/sh (or the interpreter that it is for) its first line"));
  }
  const std::string_view first = bytes.substr(0, bytes.find('\n'));
  if (!first.empty() && first.back() == '\r') {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " has Windows line ends, which no interpreter finds; convert it: sed -i 's/\\r$//' ",
        who));
  }
  if (first.find_first_not_of(" \t", 2) == std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " names no interpreter after #!; write #!/bin/sh"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Directives> read_directives(std::string_view name, std::string_view bytes) {
  Directives out;
  bool head = true;
  int number = 0;
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string_view line = bytes.substr(at, end - at);
    at = end + 1;
    ++number;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') head = false;
    if (!is_directive(line)) continue;
    if (!head) {
      out.ignored.push_back(number);
      continue;
    }
    absl::StatusOr<std::vector<std::string>> words = split_words(line.substr(kMark.size()));
    if (!words.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(name), ":", number, ": ", words.status().message(), "; close the quote"));
    }
    if (!words->empty()) out.lines.push_back({number, *std::move(words)});
  }
  return out;
}

}  // namespace xce::cli
