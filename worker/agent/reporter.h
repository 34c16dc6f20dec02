// The reporter: sends the outbox. One thread sends every report that is on disk and unconfirmed, in
// order, many a message; it starts again at the first unconfirmed one after each join and when
// confirmations stay away.
#ifndef XCE_WORKER_AGENT_REPORTER_H_
#define XCE_WORKER_AGENT_REPORTER_H_

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/connector.h"
#include "worker/agent/controller_link.h"
#include "worker/agent/outbox.h"

namespace xce::worker {

class Reporter {
 public:
  struct Options {
    uint64_t instance = 0;
    int resend_ms = 1000;  // without a confirmation
    size_t reports_a_message = 256;
  };
  Reporter(Options options, ControllerLink* link, Outbox* outbox, Connector* connector)
      : options_(options), link_(link), outbox_(outbox), connector_(connector) {}
  ~Reporter() { stop(); }

  void start();
  void stop();      // end the link's calls first
  void wake();      // reports may be pending; from any thread
  void rejoined();  // send all that is unconfirmed; from any thread

 private:
  void run();
  bool send_some();  // whether anything was sent
  void wait();

  const Options options_;
  ControllerLink* const link_;
  Outbox* const outbox_;
  Connector* const connector_;
  std::thread thread_;

  uint64_t sent_ = 0;  // highest number sent since the last start from the front
  uint64_t seen_confirmed_ = 0;
  int64_t progress_ms_ = 0;  // when something was last sent anew or confirmed

  absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool rejoined_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_REPORTER_H_
