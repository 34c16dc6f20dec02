// How the xcecli_* functions are written: one line of category, one lambda that fills in the
// request, one that takes the answer. Private to client.cc, ops_*.cc.
#ifndef XCE_LIBXCE_CLIENT_OPS_H_
#define XCE_LIBXCE_CLIENT_OPS_H_

#include <cerrno>
#include <functional>
#include <utility>

#include "libxce/client/context.h"
#include "libxce/client/convert.h"

namespace xce::client {

using Encode = std::function<void(wire::Op::Builder)>;
using Accept = std::function<int(wire::Reply::Reader)>;

inline const char* or_empty(const char* text) { return text == nullptr ? "" : text; }

inline int call(xcecli_ctx_t ctx, Category category, Encode encode, Accept accept = {},
                bool stale_ok = false) {
  if (ctx == nullptr) return -EINVAL;
  Operation op;
  op.category = category;
  op.encode = std::move(encode);
  op.accept = std::move(accept);
  op.stale_ok = stale_ok;
  return ctx->run(&op);
}

inline int read(xcecli_ctx_t ctx, Encode encode, Accept accept, bool stale_ok = false) {
  return call(ctx, Category::kRead, std::move(encode), std::move(accept), stale_ok);
}
// A read that each controller answers for itself.
inline int ask_any(xcecli_ctx_t ctx, Encode encode, Accept accept) {
  if (ctx == nullptr) return -EINVAL;
  Operation op;
  op.encode = std::move(encode);
  op.accept = std::move(accept);
  op.any_node = true;
  return ctx->run(&op);
}
inline int write(xcecli_ctx_t ctx, Encode encode, Accept accept = {}) {
  return call(ctx, Category::kWrite, std::move(encode), std::move(accept));
}
inline int fire_and_forget(xcecli_ctx_t ctx, Encode encode) {
  return call(ctx, Category::kFireAndForget, std::move(encode));
}

// Answers of another kind than asked for: a broken or much newer controller.
inline constexpr int kWrongAnswer = -EPROTO;

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_OPS_H_
