// What one running call of a context keeps to itself. Private to context*.cc.
#ifndef XCE_LIBXCE_CLIENT_CONTEXT_FRAME_H_
#define XCE_LIBXCE_CLIENT_CONTEXT_FRAME_H_

#include <optional>
#include <string>

#include "libxce/client/context.h"

namespace xce::client {

int64_t now_ms();  // of the steady clock
Clock::time_point time_point_of(int64_t ms);
int thread_deadline(uint64_t uid, int otherwise);
const Person* thread_person(uint64_t uid);  // whom this thread's calls are for; null: nobody else
std::optional<xce_op_id_t> take_thread_op_id(uint64_t uid);  // it is gone afterwards

struct Context::Frame {
  Frame(const Operation* op, int64_t now, int deadline_ms) : started_ms(now) {
    call.write = op->category == Category::kWrite;
    call.deadline_ms = now + (deadline_ms > 0 ? deadline_ms : XCE_DEFAULT_CALL_DEADLINE_MS);
  }
  // With the context's lock: counts of the context when the call began.
  void begin(uint64_t passes, uint64_t attempts) {
    passes_before = passes;
    attempts_before = attempts;
  }

  int64_t started_ms;
  CallState call;
  uint64_t passes_before = 0, attempts_before = 0;
  bool has_birth = false, wants_new_birth = false;
  bool keeps_birth = false;  // an operation id brought it along
  uint64_t birth = 0;
  uint64_t lowest_unanswered = 0;
  std::string message;    // for people, of the failure
  int reply_outcome = 0;  // what the reply said of a failed write; 0: nothing
  bool served = false;    // a primary answered, also if only to refuse
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_CONTEXT_FRAME_H_
