// Operations that read: a reply, full failover.
#include <algorithm>
#include <cstring>

#include "libxce/client/ops.h"

namespace xce::client {
namespace {

using Op = wire::Op::Builder;
using Reply = wire::Reply::Reader;

int accept_jobs(Reply reply, xce_job_page_t** out) {
  if (!reply.getBody().isJobs()) return kWrongAnswer;
  const auto page = reply.getBody().getJobs();
  const auto jobs = page.getJobs();
  auto result = new_result<xce_job_page_t>(1);
  auto guard =
      std::unique_ptr<xce_job_page_t, void (*)(xce_job_page_t*)>(result.items, xce_free_job_page);
  result.items->revision = reply.getIndex();
  result.items->next_after_id = page.getNextAfterId();
  result.items->total = page.getTotal();
  result.items->njobs = jobs.size();
  result.items->jobs = result.arena->array<xce_job_t>(rows(jobs));
  for (unsigned i = 0; i < jobs.size(); ++i) result.items->jobs[i] = job_of(jobs[i], result.arena);
  *out = guard.release();
  return 0;
}

// A list of the wire to an array of T; the caller frees it with the xce_free_ function that
// free_result is behind.
template <typename T, typename List, typename Convert>
int accept_list(const List& list, T** out, size_t* n, Convert convert) {
  auto result = new_result<T>(rows(list));
  auto guard = std::unique_ptr<T, void (*)(void*)>(result.items, free_result);
  for (unsigned i = 0; i < list.size(); ++i) result.items[i] = convert(list[i], result.arena);
  *out = guard.release();
  *n = list.size();
  return 0;
}

int job_query(xcecli_ctx_t ctx, const xce_job_filter_t* filter, xce_job_page_t** out,
              bool history) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  xce_job_filter_t all;
  std::memset(&all, 0, sizeof all);
  const xce_job_filter_t& f = filter == nullptr ? all : *filter;
  return read(
      ctx, [&](Op op) { put_filter(f, history ? op.initJobHist() : op.initJobList()); },
      [&](Reply reply) { return accept_jobs(reply, out); }, f.stale_ok);
}

xce_cluster_status_t* new_status(ArenaResult<xce_cluster_status_t> result,
                                 capnp::List<wire::Node>::Reader nodes) {
  xce_cluster_status_t* s = result.items;
  s->role = s->disk = s->scheduler = "";
  s->nnodes = nodes.size();
  s->nodes = result.arena->array<xce_node_t>(rows(nodes));
  for (unsigned i = 0; i < nodes.size(); ++i) s->nodes[i] = node_of(nodes[i], result.arena);
  return s;
}

int accept_conf(Reply reply, xce_cluster_status_t** out) {
  if (!reply.getBody().isConf()) return kWrongAnswer;
  const auto conf = reply.getBody().getConf();
  auto result = new_result<xce_cluster_status_t>(1);
  auto guard = std::unique_ptr<xce_cluster_status_t, void (*)(void*)>(result.items, free_result);
  xce_cluster_status_t* s = new_status(result, conf.getNodes());
  s->heartbeat_ms = conf.getHeartbeatMs();
  s->election_timeout_ms = conf.getElectionTimeoutMs();
  s->cluster_id = conf.getClusterId();
  s->term = reply.getTerm();
  *out = guard.release();
  return 0;
}

int accept_status(Reply reply, xce_cluster_status_t** out) {
  if (!reply.getBody().isCluster()) return kWrongAnswer;
  const auto from = reply.getBody().getCluster();
  auto result = new_result<xce_cluster_status_t>(1);
  auto guard = std::unique_ptr<xce_cluster_status_t, void (*)(void*)>(result.items, free_result);
  xce_cluster_status_t* s = new_status(result, from.getNodes());
  s->node_id = from.getNodeId();
  s->role = text_of(from.getRole(), result.arena);
  s->ready = from.getReady();
  s->leader_id = from.getLeaderId();
  s->term = from.getTerm();
  s->commit = from.getCommit();
  s->applied = from.getApplied();
  s->last_index = from.getLastIndex();
  s->cluster_id = from.getClusterId();
  s->uptime_ms = from.getUptimeMs();
  s->jobs_pending = from.getJobsPending();
  s->jobs_running = from.getJobsRunning();
  s->jobs_finished = from.getJobsFinished();
  s->sessions = from.getSessions();
  s->last_election_ms = from.getLastElectionMs();
  s->last_election_took_ms = from.getLastElectionTookMs();
  s->disk = text_of(from.getDisk(), result.arena);
  s->scheduler = text_of(from.getSchedulerName(), result.arena);
  s->heartbeat_ms = from.getHeartbeatMs();
  s->election_timeout_ms = from.getElectionTimeoutMs();
  *out = guard.release();
  return 0;
}

int accept_hello(Reply reply, xce_hello_t* out) {
  if (!reply.getBody().isHello()) return kWrongAnswer;
  if (out == nullptr) return 0;
  const auto from = reply.getBody().getHello();
  std::memset(out, 0, sizeof *out);
  out->node_id = from.getNodeId();
  out->applied = from.getApplied();
  out->outbox_applied = from.getOutboxApplied();
  out->scheduler_epoch = from.getSchedulerEpoch();
  out->cluster_id = reply.getClusterId();
  out->term = reply.getTerm();
  out->joined = from.getJoined();
  out->server_ms = from.getServerMs();
  thread_local char version[64];
  std::snprintf(version, sizeof version, "%s", from.getVersion().cStr());
  out->version = version;
  out->lease_ms = from.getLeaseMs();
  return 0;
}

int accept_log(Reply reply, xce_log_chunk_t** out) {
  if (!reply.getBody().isLog()) return kWrongAnswer;
  const auto from = reply.getBody().getLog();
  auto result = new_result<xce_log_chunk_t>(1);
  auto guard = std::unique_ptr<xce_log_chunk_t, void (*)(void*)>(result.items, free_result);
  result.items->query_id = from.getQueryId();
  result.items->status = from.getStatus();
  result.items->len = from.getData().size();
  result.items->data = result.arena->array<uint8_t>(from.getData().size() + 1);
  if (from.getData().size() > 0)
    std::copy(from.getData().begin(), from.getData().end(), result.items->data);
  result.items->offset = from.getOffset();
  result.items->eof = from.getEof();
  result.items->message = text_of(from.getMessage(), result.arena);
  *out = guard.release();
  return 0;
}

}  // namespace
}  // namespace xce::client

using namespace xce::client;  // NOLINT: the C ABI below is a thin skin over it

extern "C" {

int xcecli_hello(xcecli_ctx_t ctx, xce_hello_t* out) {
  if (ctx == nullptr) return -EINVAL;
  return read(
      ctx, [&](Op op) { ctx->put_hello(op.initHello()); },
      [&](Reply r) {
        if (r.getBody().isHello()) ctx->learn(r.getBody().getHello());
        return accept_hello(r, out);
      });
}

int xcecli_joblist(xcecli_ctx_t ctx, const xce_job_filter_t* filter, xce_job_page_t** out) {
  return job_query(ctx, filter, out, false);
}

int xcecli_jobinfo(xcecli_ctx_t ctx, uint64_t id, xce_job_page_t** out) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  return read(
      ctx, [&](Op op) { op.setJobInfo(id); }, [&](Reply r) { return accept_jobs(r, out); });
}

int xcecli_jobhist(xcecli_ctx_t ctx, const xce_job_filter_t* filter, xce_job_page_t** out) {
  return job_query(ctx, filter, out, true);
}

int xcecli_workerlist(xcecli_ctx_t ctx, xce_host_t** out, size_t* n) {
  if (out == nullptr || n == nullptr) return -EINVAL;
  return read(
      ctx, [](Op op) { op.setWorkerList(); },
      [&](Reply r) {
        return r.getBody().isHosts() ? accept_list(r.getBody().getHosts(), out, n, host_of)
                                     : kWrongAnswer;
      });
}

int xcecli_queuelist(xcecli_ctx_t ctx, xce_queue_t** out, size_t* n) {
  if (out == nullptr || n == nullptr) return -EINVAL;
  return read(
      ctx, [](Op op) { op.setQueueList(); },
      [&](Reply r) {
        return r.getBody().isQueues() ? accept_list(r.getBody().getQueues(), out, n, queue_of)
                                      : kWrongAnswer;
      });
}

int xcecli_reservationlist(xcecli_ctx_t ctx, xce_reservation_t** out, size_t* n) {
  if (out == nullptr || n == nullptr) return -EINVAL;
  return read(
      ctx, [](Op op) { op.setReservationList(); },
      [&](Reply r) {
        return r.getBody().isReservations()
                   ? accept_list(r.getBody().getReservations(), out, n, reservation_of)
                   : kWrongAnswer;
      });
}

int xcecli_userlist(xcecli_ctx_t ctx, xce_user_t** out, size_t* n) {
  if (out == nullptr || n == nullptr) return -EINVAL;
  return read(
      ctx, [](Op op) { op.setUserList(); },
      [&](Reply r) {
        return r.getBody().isUsers() ? accept_list(r.getBody().getUsers(), out, n, user_of)
                                     : kWrongAnswer;
      });
}

int xcecli_reslist(xcecli_ctx_t ctx, xce_gres_t** out, size_t* n) {
  if (out == nullptr || n == nullptr) return -EINVAL;
  const auto convert = [](xce::wire::Gres::Reader from, Arena* arena) {
    return xce_gres_t{text_of(from.getName(), arena), from.getCount(), nullptr, 0};
  };
  return read(
      ctx, [](Op op) { op.setResList(); },
      [&](Reply r) {
        return r.getBody().isGres() ? accept_list(r.getBody().getGres(), out, n, convert)
                                    : kWrongAnswer;
      });
}

int xcecli_resval(xcecli_ctx_t ctx, const char* name, uint32_t* out) {
  if (name == nullptr || out == nullptr) return -EINVAL;
  return read(
      ctx, [&](Op op) { op.setResVal(name); },
      [&](Reply r) {
        if (!r.getBody().isGres()) return kWrongAnswer;
        *out = 0;
        for (const auto gres : r.getBody().getGres())
          if (gres.getName() == name) *out = gres.getCount();
        return 0;
      });
}

int xcecli_clusterconf(xcecli_ctx_t ctx, xce_cluster_status_t** out) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  return ask_any(
      ctx, [](Op op) { op.setClusterConf(); }, [&](Reply r) { return accept_conf(r, out); });
}

int xcecli_clusterstatus(xcecli_ctx_t ctx, xce_cluster_status_t** out) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  return ask_any(
      ctx, [](Op op) { op.setClusterStatus(); }, [&](Reply r) { return accept_status(r, out); });
}

int xcecli_joblog(xcecli_ctx_t ctx, uint64_t id, xce_stream_t stream, uint64_t offset,
                  uint32_t limit, xce_log_chunk_t** out) {
  return xcecli_joblog_wait(ctx, id, stream, offset, limit, 0, out);
}

int xcecli_joblog_wait(xcecli_ctx_t ctx, uint64_t id, xce_stream_t stream, uint64_t offset,
                       uint32_t limit, uint32_t wait_ms, xce_log_chunk_t** out) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  return read(
      ctx,
      [&](Op op) {
        auto to = op.initJobLog();
        to.setId(id);
        to.setStream(static_cast<xce::wire::Stream>(stream));
        to.setOffset(offset);
        to.setLimit(limit);
        to.setWaitMs(std::min<uint32_t>(wait_ms, XCE_MAX_LOG_WAIT_MS));
      },
      [&](Reply r) { return accept_log(r, out); });
}

int xcecli_subscribe(xcecli_ctx_t ctx, uint64_t from_revision) {
  return read(ctx, [&](Op op) { op.initSubscribe().setFromRevision(from_revision); }, {});
}

int xcecli_subscribe_jobs(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids) {
  if (ids == nullptr || nids == 0 || nids > XCE_MAX_WATCHED_JOBS) return -EINVAL;
  return read(ctx,
              [&](Op op) {
                auto jobs = op.initSubscribe().initJobs(static_cast<unsigned>(nids));
                for (unsigned i = 0; i < nids; ++i) jobs.set(i, ids[i]);
              },
              {});
}

int xcecli_unsubscribe(xcecli_ctx_t ctx) {
  return read(ctx, [](Op op) { op.setUnsubscribe(); }, {});
}

}  // extern "C"
