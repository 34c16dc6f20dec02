// Failover stories as data: libxce/client/testdata/failover/*.yaml (its README tells the format).
// Two tests run each: one feeds the pure decision under a virtual clock, one the whole client
// against scripted controllers.
#ifndef XCE_LIBXCE_CLIENT_TESTING_FAILOVER_CASE_H_
#define XCE_LIBXCE_CLIENT_TESTING_FAILOVER_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace xce::client {

using Range = std::pair<int64_t, int64_t>;  // both ends belong to it

// One line of a story.
struct CaseStep {
  enum class Kind {
    kCall,    // the program calls `word`: start, submit, list
    kResult,  // that call returns `word`: ok or a status; `maybe`: the write may have been applied
    kMaster,  // `master` is asked and does `word`
    kHook,    // the rejoin hook says `word`: ok or fail
    kLost,    // the idle connection to `master` ends
  } kind = Kind::kMaster;
  int master = -1;  // 0 is "a"; kAny
  std::string word;
  int redirect = -1;  // of "redirect": the master that it names; -1: no address
  uint64_t term = 0;
  int64_t until_ms = 0;  // > 0: said again and again until this time
  bool maybe = false;
};
inline constexpr int kAny = -1;

struct FailoverCase {
  std::string name;
  std::vector<std::string> covers;  // requirements
  int masters = 1;
  uint32_t seed = 1;
  int64_t clock_ms = 0;
  int deadline_ms = 120000;
  int max_retries = 20, initial_delay_ms = 10, max_delay_ms = 5000;
  bool decision_only = false;  // too slow for the real clock
  std::vector<CaseStep> steps;
  // Expectations; empty ones are not checked.
  std::vector<int> endpoints;   // every connect, in order
  std::vector<Range> sleeps;    // after every failed attempt, in order; 0..0: none
  std::vector<Range> slept;     // one: all sleeps together
  std::vector<Range> elapsed;   // one: the whole story
  std::vector<int> resent;      // of each write sent: was it marked as resent?
  std::vector<int> applied;     // one: how many writes took effect
  std::vector<int> hooks;       // one: calls of the rejoin hook
  std::vector<int> generation;  // one: connections that came to serve
  std::map<std::string, int64_t> stats;
};

// A positive E_XCE_ value of "not_ready", "redirect", ...; 0 for "ok"; -1 when it is none.
int status_of_word(const std::string& word);

// Every case of every file of the test's data. Aborts with a message on a malformed one.
std::vector<FailoverCase> all_failover_cases();

// "no_master_for_3_s": a name for GoogleTest.
std::string test_name(const FailoverCase& c);

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_TESTING_FAILOVER_CASE_H_
