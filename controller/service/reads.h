// Answers of reads from the state. PURE.
#ifndef XCE_CONTROLLER_SERVICE_READS_H_
#define XCE_CONTROLLER_SERVICE_READS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/history/archive.h"
#include "controller/service/answer.h"
#include "controller/service/request.h"
#include "controller/state/state.h"
#include "libxce/model/command.h"

namespace xce::service {

// Whether this caller may do this operation at all; otherwise *why says who may.
bool may_ask(Role role, Ask ask, std::string* why);
// Whether this caller may see a job's script, environment and output.
bool may_see(const Job& job, const Identity& who);

// What the state has to say to a read of jobs that may have departed from it.
struct HalfAnswer {
  history::Query query;  // for the rest
  std::vector<Job> jobs;
  JobId next_after_id = 0;
  uint64_t total = 0;
};
// The read's first half, if the archive must be asked as well: jobHist always; jobInfo and a
// jobList of ids or of an array when jobs that they name are not in the state.
std::optional<HalfAnswer> half_of(const state::State& state, const Request& request);
// Both halves in one page. A job that departed in between is in both.
void answer_whole(HalfAnswer half, history::Page page, const Request& request, Answer* answer);

// Fills status, message and body of the answer to a read (is_read) or schedAdmin, from the state
// alone.
void answer_read(const state::State& state, const Request& request, Answer* answer);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_READS_H_
