// Operation ids that callers choose: xcecli_make_op_id and its relatives. What a chosen id does to
// a write is in context_calls.cc (take_chosen_id).
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "libxce/client/ops.h"
#include "libxce/net/digest.h"

extern "C" {

int xcecli_make_op_id(xcecli_ctx_t ctx, xce_op_id_t* out) {
  if (out == nullptr) return -EINVAL;
  // Today's index, not the one of the connection's start: that may be older than what the cluster
  // has forgotten since, and a new id would then look like a forgotten one.
  xce_hello_t hello;
  if (const int rc = xcecli_hello(ctx, &hello); rc < 0) return rc;
  std::random_device device;
  *out = {(uint64_t{device()} << 32) | device(), (uint64_t{device()} << 32) | device(),
          hello.applied};
  return 0;
}

int xce_op_id_of_key(const char* key, xce_op_id_t* out) {
  if (key == nullptr || key[0] == '\0' || out == nullptr) return -EINVAL;
  const auto id = xce::net::digest128(std::string("op key ") + key);
  *out = {id[0], id[1], 0};
  return 0;
}

int xce_op_id_text(const xce_op_id_t* id, char* out, size_t len) {
  if (id == nullptr || out == nullptr) return -EINVAL;
  if (len < XCE_OP_ID_TEXT_LEN) return -ENAMETOOLONG;
  std::snprintf(out, len, "%016" PRIx64 "%016" PRIx64 "-%" PRIu64, id->hi, id->lo, id->birth);
  return 0;
}

int xce_op_id_parse(const char* text, xce_op_id_t* out) {
  if (text == nullptr || out == nullptr) return -EINVAL;
  xce_op_id_t id = {};
  if (std::sscanf(text, "%16" SCNx64 "%16" SCNx64 "-%" SCNu64, &id.hi, &id.lo, &id.birth) != 3)
    return -EINVAL;
  char again[XCE_OP_ID_TEXT_LEN];
  xce_op_id_text(&id, again, sizeof again);
  if (std::strcmp(text, again) != 0) return -EINVAL;  // spaces, signs, more behind it
  *out = id;
  return 0;
}

int xcecli_set_op_id(xcecli_ctx_t ctx, const xce_op_id_t* id) {
  if (ctx == nullptr || (id != nullptr && id->hi == 0 && id->lo == 0)) return -EINVAL;
  ctx->set_op_id(id);
  return 0;
}

}  // extern "C"
