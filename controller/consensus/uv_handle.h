// libuv handles that outlive their owner by as long as libuv needs them.
#ifndef XCE_CONTROLLER_CONSENSUS_UV_HANDLE_H_
#define XCE_CONTROLLER_CONSENSUS_UV_HANDLE_H_

#include <uv.h>

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

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_UV_HANDLE_H_
