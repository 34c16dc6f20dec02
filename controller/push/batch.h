// What is pushed to a connection: values that the hub makes and the client I/O thread encodes. PURE
// but for Flow's atomics.
#ifndef XCE_CONTROLLER_PUSH_BATCH_H_
#define XCE_CONTROLLER_PUSH_BATCH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "libxce/model/event.h"

namespace xce::push {

using ConnId = uint64_t;  // of a client connection; never used again within a process

struct Gap {  // events up to this revision are gone: the consumer takes the state anew
  Index revision = 0;
};
struct Wakeup {};
struct LogQuery {  // to a worker: answer with jobLogData
  uint64_t query_id = 0;
  JobId job = 0;
  Stream stream = Stream::kStdout;
  uint64_t offset = 0;
  uint32_t limit = 0;
  uint32_t wait_ms = 0;
};
struct SchedAdmin {
  std::string text;
};

using EventPtr = std::shared_ptr<const Event>;
using Item = std::variant<EventPtr, Gap, Wakeup, LogQuery, SchedAdmin>;

// One Push message. Shared by all consumers that get the same, so that it is encoded once.
struct Batch {
  Index revision = 0;  // every event up to here that concerns the consumer has been sent with this
                       // batch or before
  bool full = false;   // jobs with script, arguments and environment (for workers)
  std::vector<Item> items;
  int64_t estimated_bytes = 0;
};

struct Delivery {
  std::shared_ptr<const Batch> batch;
  std::vector<ConnId> to;
};

// How much a connection still has to send. Shared by the hub (consensus thread) and the I/O thread,
// so that a slow reader leaves its events in the hub's ring instead of in memory of its own.
struct Flow {
  std::atomic<int64_t> bytes{0};     // handed to the I/O thread and not yet written to the socket
  std::atomic<bool> blocked{false};  // the hub waits: the I/O thread wakes it once bytes are few
};

}  // namespace xce::push

#endif  // XCE_CONTROLLER_PUSH_BATCH_H_
