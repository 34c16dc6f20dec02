// Answers of reads from the state. PURE.
#ifndef XCE_CONTROLLER_SERVICE_READS_H_
#define XCE_CONTROLLER_SERVICE_READS_H_

#include <string>

#include "controller/service/answer.h"
#include "controller/service/request.h"
#include "controller/state/state.h"
#include "libxce/model/command.h"

namespace xce::service {

// Whether this caller may do this operation at all; otherwise *why says who may.
bool may_ask(Role role, Ask ask, std::string* why);
// Whether this caller may see a job's script, environment and output.
bool may_see(const Job& job, const Identity& who);

// Fills status, message and body of the answer to a read (is_read) or schedAdmin.
void answer_read(const state::State& state, const Request& request, Answer* answer);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_READS_H_
