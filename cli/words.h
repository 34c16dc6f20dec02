// Times, amounts and outcomes in the words that people read. PURE: "now" is an argument.
#ifndef XCE_CLI_WORDS_H_
#define XCE_CLI_WORDS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace xce::cli {

// "now", "3s ago", "5m ago", "2h ago", "4d ago"; "in 5m" for the future; "-" for 0.
std::string relative_time(int64_t now_ms, int64_t time_ms);
// "2026-11-30T09:31:08.123Z"; "" for 0.
std::string iso_time(int64_t time_ms);
// "0:07", "12:05", "1:02:03", "2-03:04:05".
std::string clock_duration(int64_t ms);
// "7 ms", "1.2 s", "3 min 5 s", "2 h 3 min", "4 d 2 h".
std::string long_duration(int64_t ms);
// "512M", "2G", "1.5G".
std::string memory_words(uint64_t mb);
// "0", "3", "137 (killed by SIGKILL)", "127 (command not found)", "126 (command could not be
// executed)".
std::string exit_code_words(int exit_code, uint32_t exit_signal);
// "1 job", "3 jobs".
std::string count_words(uint64_t n, std::string_view one, std::string_view many);
// Control characters and broken UTF-8 become '?': nothing that a job is called may steer a
// terminal.
std::string printable(std::string_view text);
// "0-4,7,9-10" for ascending numbers.
class RangeWriter {
 public:
  void add(uint32_t n);
  std::string str() const;

 private:
  void flush(std::string* out) const;
  std::string done_;
  bool any_ = false;
  uint32_t first_ = 0, last_ = 0;
};

}  // namespace xce::cli

#endif  // XCE_CLI_WORDS_H_
