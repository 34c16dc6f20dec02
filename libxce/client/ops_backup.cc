// A backup, piece by piece. A read: nothing is applied, and a lost connection only means that it
// must begin anew.
#include <algorithm>

#include "libxce/client/ops.h"

namespace xce::client {
namespace {

using Op = wire::Op::Builder;
using Reply = wire::Reply::Reader;

int accept_part(Reply reply, xce_backup_part_t** out) {
  if (!reply.getBody().isBackup()) return kWrongAnswer;
  const auto from = reply.getBody().getBackup();
  auto result = new_result<xce_backup_part_t>(1);
  auto guard = std::unique_ptr<xce_backup_part_t, void (*)(void*)>(result.items, free_result);
  result.items->id = from.getId();
  result.items->index = from.getIndex();
  result.items->total = from.getTotal();
  result.items->offset = from.getOffset();
  result.items->len = from.getData().size();
  result.items->data = result.arena->array<uint8_t>(from.getData().size() + 1);
  std::copy(from.getData().begin(), from.getData().end(), result.items->data);
  result.items->crc = from.getCrc();
  *out = guard.release();
  return 0;
}

}  // namespace
}  // namespace xce::client

using namespace xce::client;  // NOLINT: the C ABI below is a thin skin over it

extern "C" {

int xcecli_backup(xcecli_ctx_t ctx, uint64_t id, uint64_t offset, xce_backup_part_t** out) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  return read(
      ctx,
      [&](Op op) {
        if (id == 0) {
          op.setBackup();
        } else {
          auto to = op.initBackupRead();
          to.setId(id);
          to.setOffset(offset);
        }
      },
      [&](Reply reply) { return accept_part(reply, out); });
}

void xce_free_backup_part(xce_backup_part_t* part) { free_result(part); }

}  // extern "C"
