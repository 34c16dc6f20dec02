// libuv handles that outlive their owner by as long as libuv needs them.
#ifndef XCE_CONTROLLER_CONSENSUS_UV_HANDLE_H_
#define XCE_CONTROLLER_CONSENSUS_UV_HANDLE_H_

#include <uv.h>

#include <functional>
#include <utility>

namespace xce::consensus {

// Closes a handle made with new, deletes it once libuv is through with it, and forgets it. No
// callback of the handle runs afterwards. Does nothing for nullptr.
template <class Handle>
void close_handle(Handle*& handle) {
  if (handle == nullptr) return;
  handle->data = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(handle),
           [](uv_handle_t* h) { delete reinterpret_cast<Handle*>(h); });
  handle = nullptr;
}

// Runs something that may take long and that nobody waits for.
inline void in_background(uv_loop_t* loop, std::function<void()> work) {
  struct Request {
    uv_work_t work;
    std::function<void()> run;
  };
  auto* const request = new Request{{}, std::move(work)};
  request->work.data = request;
  uv_queue_work(
      loop, &request->work,
      [](uv_work_t* work) {
        auto* const request = static_cast<Request*>(work->data);
        request->run();
        request->run = nullptr;
      },
      [](uv_work_t* work, int) { delete static_cast<Request*>(work->data); });
}

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_UV_HANDLE_H_
