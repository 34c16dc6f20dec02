// Drives a Service on a libuv loop: its mailbox, its turns, its ticks. Thread: the loop's, which is
// the consensus thread; post() from any thread.
#ifndef XCE_CONTROLLER_SERVICE_RUNNER_H_
#define XCE_CONTROLLER_SERVICE_RUNNER_H_

#include <uv.h>

#include <vector>

#include "controller/service/mailbox.h"
#include "controller/service/request.h"
#include "controller/service/service.h"

namespace xce::service {

class Runner {
 public:
  Runner(uv_loop_t* loop, Service* service);
  // Hands what came in to the service.
  void post(std::vector<Inbound> inbound) { mailbox_.post_all(std::move(inbound)); }
  size_t inbox() const { return mailbox_.size(); }  // any thread
  // Ends the handles; the loop must turn once more before this object is destroyed.
  void close();

  static Service::Clock clock();  // uv_hrtime and the wall clock

 private:
  void turn();

  Service* const service_;
  Mailbox<Inbound> mailbox_;
  uv_prepare_t before_wait_;
  uv_idle_t more_;  // runs while there is more to do at once: the loop then does not wait
  uv_timer_t ticker_;
  bool closed_ = false;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_RUNNER_H_
