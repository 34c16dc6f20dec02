// Operations that write (a reply, applied exactly once) and those without a reply.
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "libxce/client/ops.h"

namespace xce::client {
namespace {

using Op = wire::Op::Builder;
using Reply = wire::Reply::Reader;

int accept_affected(Reply reply) {
  return reply.getBody().isAffected() ? static_cast<int>(reply.getBody().getAffected()) : 0;
}

int accept_submitted(Reply reply, xce_submitted_t* out) {
  if (!reply.getBody().isSubmitted()) return kWrongAnswer;
  const auto from = reply.getBody().getSubmitted();
  if (out != nullptr) *out = {from.getJobId(), from.getCount(), from.getExisting()};
  return 0;
}

int notify_one(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report,
               xce_notify_kind_t kind) {
  if (report == nullptr) return -EINVAL;
  xce_report_t copy = *report;
  copy.kind = kind;
  return xcecli_notify(ctx, instance, &copy, 1);
}

int control(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids,
            const std::function<void(wire::JobCtrl::Builder)>& fill) {
  if (ids == nullptr && nids > 0) return -EINVAL;
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initJobCtrl();
        auto list = to.initIds(static_cast<unsigned>(nids));
        for (size_t i = 0; i < nids; ++i) list.set(static_cast<unsigned>(i), ids[i]);
        fill(to);
      },
      accept_affected);
}

}  // namespace
}  // namespace xce::client

using namespace xce::client;  // NOLINT: the C ABI below is a thin skin over it

extern "C" {

int xcecli_join(xcecli_ctx_t ctx, xce_host_role_t role, const xce_host_attrs_t* host,
                uint64_t instance, xce_joined_t* out) {
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initJoin();
        to.setRole(static_cast<xce::wire::Role>(role));
        if (host != nullptr) put_attrs(*host, to.initHost());
        to.setInstance(instance);
      },
      [&](Reply reply) {
        if (!reply.getBody().isJoined()) return kWrongAnswer;
        const auto from = reply.getBody().getJoined();
        if (out != nullptr)
          *out = {from.getRevision(), from.getEpoch(), from.getOutboxApplied(), from.getActive()};
        return 0;
      });
}

int xcecli_jobsub(xcecli_ctx_t ctx, const xce_job_spec_t* spec, xce_submitted_t* out) {
  if (ctx == nullptr || spec == nullptr) return -EINVAL;
  if (spec->script_len > XCE_MAX_SCRIPT_BYTES) {
    *last_error() = xce_error_t{};
    last_error()->status = -E_XCE_INVALID;
    last_error()->outcome = XCE_NOT_APPLIED;
    std::snprintf(
        last_error()->message, sizeof last_error()->message,
        "the script has %zu bytes, the limit is %d: put the data in a file that the job reads",
        spec->script_len, XCE_MAX_SCRIPT_BYTES);
    return -E_XCE_INVALID;
  }
  if ((spec->script == nullptr && spec->script_len > 0) ||
      (spec->args == nullptr && spec->nargs > 0))
    return -EINVAL;
  const uint64_t hash = body_hash(*spec);
  xce_submitted_t submitted = {};
  Operation op;
  op.category = Category::kWrite;
  op.encode = [&](Op to) {
    auto job = to.initJobSubmit();
    put_spec(*spec, job);
    job.setBodyHash(hash);
    if (spec->submit_key == nullptr || spec->submit_key[0] == '\0') {
      char key[80];
      const uint64_t hi = op.chosen ? op.chosen->hi : ctx->client_id()[0];
      const uint64_t lo = op.chosen ? op.chosen->lo : ctx->client_id()[1];
      std::snprintf(key, sizeof key, "xce-%016" PRIx64 "%016" PRIx64 "-%" PRIu64, hi, lo,
                    op.op_seq);
      job.setSubmitKey(key);
    }
  };
  op.accept = [&](Reply reply) { return accept_submitted(reply, &submitted); };
  int rc = ctx->run(&op);
  const bool no_key = spec->submit_key == nullptr || spec->submit_key[0] == '\0';
  if (rc == -E_XCE_DUP_JOB && op.dup.existing &&
      (op.maybe_applied || (op.chosen.has_value() && no_key))) {
    submitted =
        op.dup;  // an earlier attempt of this very call made that job: the bodies are the same
    last_error()->status = rc = 0;
    last_error()->outcome = XCE_APPLIED;
  }
  if (rc == 0 && out != nullptr) *out = submitted;
  return rc;
}

int xcecli_jobctrl(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids, xce_jobctrl_action_t action,
                   uint32_t signal, bool whole_array) {
  return control(ctx, ids, nids, [&](xce::wire::JobCtrl::Builder to) {
    to.setAction(static_cast<xce::wire::JobAction>(action));
    to.setSignal(signal);
    to.setWholeArray(whole_array);
  });
}

int xcecli_jobmodify(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids,
                     const xce_job_spec_t* fields, uint32_t mask) {
  if (fields == nullptr) return -EINVAL;
  return control(ctx, ids, nids, [&](xce::wire::JobCtrl::Builder to) {
    to.setAction(xce::wire::JobAction::MODIFY);
    put_spec(*fields, to.initModify());
    to.setModifyMask(mask & ~XCE_MODIFY_WHOLE_ARRAY);
    to.setWholeArray((mask & XCE_MODIFY_WHOLE_ARRAY) != 0);
  });
}

int xcecli_queuectrl(xcecli_ctx_t ctx, xce_queue_action_t action, const xce_queue_t* queue) {
  if (queue == nullptr) return -EINVAL;
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initQueueCtrl();
        to.setAction(static_cast<xce::wire::QueueAction>(action));
        put_queue(*queue, to.initQueue());
      },
      accept_affected);
}

int xcecli_queuemodify(xcecli_ctx_t ctx, const xce_queue_t* queue, uint32_t mask) {
  if (queue == nullptr || mask == 0) return -EINVAL;
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initQueueCtrl();
        to.setAction(xce::wire::QueueAction::UPDATE);
        put_queue(*queue, to.initQueue());
        to.setMask(mask);
      },
      accept_affected);
}

int xcecli_reservationctrl(xcecli_ctx_t ctx, xce_reservation_action_t action,
                           const xce_reservation_t* reservation) {
  if (reservation == nullptr) return -EINVAL;
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initReservationCtrl();
        to.setAction(static_cast<xce::wire::ReservationAction>(action));
        put_reservation(*reservation, to.initReservation());
      },
      accept_affected);
}

int xcecli_hostctrl(xcecli_ctx_t ctx, xce_host_action_t action, const char* host,
                    const char* reason) {
  if (host == nullptr) return -EINVAL;
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initHostCtrl();
        to.setAction(static_cast<xce::wire::HostAction>(action));
        to.setName(host);
        to.setReason(or_empty(reason));
      },
      accept_affected);
}

int xcecli_update_resvals(xcecli_ctx_t ctx, const xce_gres_t* gres, size_t n) {
  if (gres == nullptr && n > 0) return -EINVAL;
  return write(ctx,
               [&](Op op) { put_gres(gres, n, op.initUpdateResvals(static_cast<unsigned>(n))); });
}

int xcecli_runtask(xcecli_ctx_t ctx, uint64_t job_id, const char* const* args, size_t nargs) {
  if (args == nullptr || nargs == 0) return -EINVAL;
  return write(ctx, [&](Op op) {
    auto to = op.initRunTask();
    to.setJobId(job_id);
    auto list = to.initArgs(static_cast<unsigned>(nargs));
    for (size_t i = 0; i < nargs; ++i) list.set(static_cast<unsigned>(i), or_empty(args[i]));
  });
}

int xcecli_jobdispatch(xcecli_ctx_t ctx, uint64_t epoch, const xce_dispatch_t* items, size_t n,
                       int* item_status) {
  if (items == nullptr || n == 0) return -EINVAL;
  return write(
      ctx,
      [&](Op op) {
        auto to = op.initJobDispatch();
        to.setEpoch(epoch);
        auto list = to.initItems(static_cast<unsigned>(n));
        for (size_t i = 0; i < n; ++i) {
          auto item = list[static_cast<unsigned>(i)];
          item.setJobId(items[i].job_id);
          item.setAttempt(items[i].attempt);
          auto allocs = item.initAllocs(static_cast<unsigned>(items[i].nallocs));
          for (size_t a = 0; a < items[i].nallocs; ++a)
            put_alloc(items[i].allocs[a], allocs[static_cast<unsigned>(a)]);
        }
      },
      [&](Reply reply) {
        if (!reply.getBody().isDispatched()) return kWrongAnswer;
        const auto fates = reply.getBody().getDispatched();
        if (fates.size() != n) return kWrongAnswer;
        for (unsigned i = 0; item_status != nullptr && i < fates.size(); ++i)
          item_status[i] = fates[i];
        return 0;
      });
}

int xcecli_jobevict(xcecli_ctx_t ctx, uint64_t epoch, const xce_eviction_t* items, size_t n) {
  if (items == nullptr || n == 0) return -EINVAL;
  return write(ctx, [&](Op op) {
    auto to = op.initJobDispatch();
    to.setEpoch(epoch);
    auto list = to.initEvictions(static_cast<unsigned>(n));
    for (size_t i = 0; i < n; ++i) {
      auto item = list[static_cast<unsigned>(i)];
      item.setJobId(items[i].job_id);
      item.setAttempt(items[i].attempt);
      item.setReason(or_empty(items[i].reason));
    }
  });
}

int xcecli_set_pend_reason(xcecli_ctx_t ctx, uint64_t epoch, const xce_pend_reason_t* items,
                           size_t n) {
  if (items == nullptr || n == 0) return -EINVAL;
  return write(ctx, [&](Op op) {
    auto to = op.initSetPendReason();
    to.setEpoch(epoch);
    auto list = to.initItems(static_cast<unsigned>(n));
    for (size_t i = 0; i < n; ++i) {
      list[static_cast<unsigned>(i)].setJobId(items[i].job_id);
      list[static_cast<unsigned>(i)].setReason(or_empty(items[i].reason));
      list[static_cast<unsigned>(i)].setHopeless(items[i].hopeless);
    }
  });
}

int xcecli_schedadmin(xcecli_ctx_t ctx, const char* command, char* out, size_t len) {
  if (command == nullptr) return -EINVAL;
  return write(
      ctx, [&](Op op) { op.setSchedAdmin(command); },
      [&](Reply reply) {
        if (out != nullptr && len > 0)
          std::snprintf(out, len, "%s",
                        reply.getBody().isText() ? reply.getBody().getText().cStr() : "");
        return 0;
      });
}

int xcecli_memberctrl(xcecli_ctx_t ctx, xce_member_action_t action, uint64_t node_id,
                      const char* host, uint16_t port) {
  return write(ctx, [&](Op op) {
    auto to = op.initMemberCtrl();
    to.setAction(static_cast<xce::wire::MemberAction>(action));
    to.setNodeId(node_id);
    to.setHost(or_empty(host));
    to.setPort(port);
  });
}

// ---- without a reply
// -------------------------------------------------------------------------------------------

int xcecli_notify(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* reports, size_t n) {
  if (ctx == nullptr || reports == nullptr || n == 0) return -EINVAL;
  return fire_and_forget(ctx, [&](Op op) {
    auto to = op.initNotify();
    to.setHost(ctx->name());
    to.setInstance(instance);
    auto items = to.initItems(static_cast<unsigned>(n));
    for (size_t i = 0; i < n; ++i) put_report(reports[i], items[static_cast<unsigned>(i)]);
  });
}

int xcecli_notify_jobstart(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report) {
  return notify_one(ctx, instance, report, XCE_NOTIFY_START);
}
int xcecli_notify_jobfinish(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report) {
  return notify_one(ctx, instance, report, XCE_NOTIFY_FINISH);
}
int xcecli_notify_jobfail(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report) {
  return notify_one(ctx, instance, report, XCE_NOTIFY_FAIL);
}
int xcecli_notify_jobstop(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report) {
  return notify_one(ctx, instance, report, XCE_NOTIFY_STOP);
}
int xcecli_notify_jobchkpt(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report) {
  return notify_one(ctx, instance, report, XCE_NOTIFY_CHKPT);
}

int xcecli_joblog_answer(xcecli_ctx_t ctx, const xce_log_chunk_t* chunk) {
  if (chunk == nullptr || (chunk->data == nullptr && chunk->len > 0)) return -EINVAL;
  return fire_and_forget(ctx, [&](Op op) {
    auto to = op.initJobLogData();
    to.setQueryId(chunk->query_id);
    to.setStatus(chunk->status);
    if (chunk->len > 0) to.setData(kj::arrayPtr(chunk->data, chunk->len));
    to.setOffset(chunk->offset);
    to.setEof(chunk->eof);
    to.setMessage(or_empty(chunk->message));
  });
}

int xcecli_estimates(xcecli_ctx_t ctx, uint64_t epoch, const xce_estimate_t* items, size_t n) {
  if (items == nullptr || n == 0) return -EINVAL;
  return fire_and_forget(ctx, [&](Op op) {
    auto to = op.initEstimates();
    to.setEpoch(epoch);
    auto list = to.initItems(static_cast<unsigned>(n));
    for (size_t i = 0; i < n; ++i) {
      list[static_cast<unsigned>(i)].setJobId(items[i].job_id);
      list[static_cast<unsigned>(i)].setStartMs(items[i].start_ms);
    }
  });
}

int xcecli_heartbeat(xcecli_ctx_t ctx) {
  return fire_and_forget(ctx, [](Op op) { op.setHeartbeat(); });
}
int xcecli_wakeup(xcecli_ctx_t ctx) {
  return fire_and_forget(ctx, [](Op op) { op.setWakeup(); });
}
int xcecli_nop(xcecli_ctx_t ctx) {
  return fire_and_forget(ctx, [](Op op) { op.setNop(); });
}

}  // extern "C"
