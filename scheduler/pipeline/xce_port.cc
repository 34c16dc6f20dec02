#include "scheduler/pipeline/xce_port.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "scheduler/pipeline/convert.h"

namespace xce::sched {
namespace {

using PageCall = int (*)(xcecli_ctx_t, const xce_job_filter_t*, xce_job_page_t**);

int page_of(PageCall call, xcecli_ctx_t ctx, const JobFilter& filter, std::vector<Job>* rows,
            JobId* next_after) {
  xce_job_filter_t c = {};
  c.ids = filter.ids.empty() ? nullptr : filter.ids.data();
  c.nids = filter.ids.size();
  c.states = filter.states;
  c.array_id = filter.array_id;
  c.after_id = filter.after_id;
  c.limit = filter.limit;
  c.descending = filter.descending;
  xce_job_page_t* page = nullptr;
  const int rc = call(ctx, &c, &page);
  if (rc < 0) return rc;
  rows->clear();
  rows->reserve(page->njobs);
  for (size_t i = 0; i < page->njobs; ++i) rows->push_back(job_from(page->jobs[i]));
  *next_after = page->next_after_id;
  xce_free_job_page(page);
  return 0;
}

// Allocations in their C form; holds the memory that they point to.
class CAllocs {
 public:
  void fill(const std::vector<Alloc>& allocs, xce_dispatch_t* to) {
    auto& list = lists_.emplace_back();
    list.reserve(allocs.size());
    for (const Alloc& a : allocs) {
      auto& gres = gres_.emplace_back();
      gres.reserve(a.gres.size());
      for (const Gres& g : a.gres) gres.push_back(xce_gres_t{g.name.c_str(), g.count, nullptr, 0});
      list.push_back(xce_alloc_t{a.host.c_str(), a.cpus, a.memory_mb, gres.data(), gres.size()});
    }
    to->allocs = list.data();
    to->nallocs = list.size();
  }

 private:
  std::deque<std::vector<xce_alloc_t>> lists_;
  std::deque<std::vector<xce_gres_t>> gres_;
};

}  // namespace

XcePort::~XcePort() { close(); }

int XcePort::open(const xce_client_config_t& config, PushSink* sink) {
  sink_ = sink;
  const int rc = xcecli_ctx_init(&ctx_, &config);
  if (rc < 0) return rc;
  xcecli_set_reconnect_handler(ctx_, &XcePort::on_reconnect, this);
  xcecli_set_push_handler(ctx_, &XcePort::on_push, this);
  return 0;
}

int XcePort::reach(int deadline_ms) {
  xcecli_set_deadline(ctx_, deadline_ms);
  const int rc = started_ ? xcecli_hello(ctx_, nullptr) : xcecli_start(ctx_);
  started_ = true;
  xcecli_set_deadline(ctx_, 0);
  return rc;
}

std::string XcePort::last_trail() {
  xce_error_t error = {};
  xcecli_last_error(&error);
  return error.trail;
}

void XcePort::stop() {
  if (ctx_ != nullptr) xcecli_stop(ctx_);
}

void XcePort::close() {
  if (ctx_ == nullptr) return;
  xcecli_ctx_free(ctx_);
  ctx_ = nullptr;
}

std::string XcePort::current_master() {
  char out[XCE_MAXHOSTNAME_LEN + 8] = "";
  xcecli_current_master(ctx_, out, sizeof out);
  return out;
}

// Only a flag: a call into the context from here would be -EDEADLK (A2).
int XcePort::on_reconnect(xcecli_ctx_t, void* self) {
  static_cast<XcePort*>(self)->sink_->on_reconnect();
  return 0;
}

void XcePort::on_push(xcecli_ctx_t, const xce_event_t* event, void* self) {
  PushSink* sink = static_cast<XcePort*>(self)->sink_;
  const std::string name = event->name == nullptr ? "" : event->name;
  switch (event->kind) {
    case XCE_EVENT_JOB: sink->on_event(job_from(*event->job)); break;
    case XCE_EVENT_JOB_REMOVED: sink->on_event(JobGone{event->id, event->revision}); break;
    case XCE_EVENT_HOST: sink->on_event(host_from(*event->host)); break;
    case XCE_EVENT_HOST_REMOVED: sink->on_event(HostGone{name}); break;
    case XCE_EVENT_QUEUE: sink->on_event(queue_from(*event->queue)); break;
    case XCE_EVENT_QUEUE_REMOVED: sink->on_event(QueueGone{name}); break;
    case XCE_EVENT_RESERVATION: sink->on_event(reservation_from(*event->reservation)); break;
    case XCE_EVENT_RESERVATION_REMOVED:
      sink->on_event(ReservationGone{name, event->revision});
      break;
    case XCE_EVENT_GAP: sink->on_gap(); break;
    case XCE_EVENT_SCHEDULER: sink->on_scheduler(event->id, name); break;
    case XCE_EVENT_WAKEUP:
    case XCE_EVENT_SCHED_ADMIN: sink->on_event(WakeUp{}); break;
    case XCE_EVENT_LOG_QUERY:
    case XCE_EVENT_OUTBOX_APPLIED: break;  // for workers
  }
}

int XcePort::join(JoinAnswer* out) {
  xce_joined_t joined = {};
  const int rc = xcecli_join(ctx_, HostRole_scheduler, nullptr, 0, &joined);
  if (rc < 0) return rc;
  out->revision = joined.revision;
  out->epoch = joined.epoch;
  out->active = joined.active;
  return 0;
}

int XcePort::dispatch(uint64_t epoch, const std::vector<Dispatch>& items,
                      std::vector<int>* item_status) {
  CAllocs allocs;
  std::vector<xce_dispatch_t> list(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    list[i].job_id = items[i].job;
    list[i].attempt = items[i].attempt;
    allocs.fill(items[i].allocs, &list[i]);
  }
  item_status->assign(items.size(), 0);
  return xcecli_jobdispatch(ctx_, epoch, list.data(), list.size(), item_status->data());
}

int XcePort::evict(uint64_t epoch, const std::vector<Eviction>& items) {
  std::vector<xce_eviction_t> list;
  list.reserve(items.size());
  for (const Eviction& item : items)
    list.push_back(xce_eviction_t{item.job, item.attempt, item.reason.c_str()});
  return xcecli_jobevict(ctx_, epoch, list.data(), list.size());
}

int XcePort::pend_reasons(uint64_t epoch, const std::vector<PendReason>& items) {
  std::vector<xce_pend_reason_t> list;
  list.reserve(items.size());
  for (const PendReason& item : items)
    list.push_back(xce_pend_reason_t{item.job, item.reason.c_str(), item.hopeless});
  return xcecli_set_pend_reason(ctx_, epoch, list.data(), list.size());
}

int XcePort::jobs(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) {
  return page_of(&xcecli_joblist, ctx_, filter, rows, next_after);
}

int XcePort::history(const JobFilter& filter, std::vector<Job>* rows, JobId* next_after) {
  return page_of(&xcecli_jobhist, ctx_, filter, rows, next_after);
}

int XcePort::hosts(std::vector<Host>* out) {
  xce_host_t* hosts = nullptr;
  size_t n = 0;
  const int rc = xcecli_workerlist(ctx_, &hosts, &n);
  if (rc < 0) return rc;
  out->clear();
  for (size_t i = 0; i < n; ++i) out->push_back(host_from(hosts[i]));
  xce_free_hosts(hosts, n);
  return 0;
}

int XcePort::queues(std::vector<Queue>* out) {
  xce_queue_t* queues = nullptr;
  size_t n = 0;
  const int rc = xcecli_queuelist(ctx_, &queues, &n);
  if (rc < 0) return rc;
  out->clear();
  for (size_t i = 0; i < n; ++i) out->push_back(queue_from(queues[i]));
  xce_free_queues(queues, n);
  return 0;
}

int XcePort::reservations(std::vector<Reservation>* out) {
  xce_reservation_t* list = nullptr;
  size_t n = 0;
  const int rc = xcecli_reservationlist(ctx_, &list, &n);
  if (rc < 0) return rc;
  out->clear();
  for (size_t i = 0; i < n; ++i) out->push_back(reservation_from(list[i]));
  xce_free_reservations(list, n);
  return 0;
}

int XcePort::active_scheduler(std::string* name) {
  xce_cluster_status_t* status = nullptr;
  const int rc = xcecli_clusterstatus(ctx_, &status);
  if (rc < 0) return rc;
  *name = status->scheduler == nullptr ? "" : status->scheduler;
  xce_free_cluster_status(status);
  return 0;
}

void XcePort::estimates(uint64_t epoch, const std::vector<StartEstimate>& items) {
  std::vector<xce_estimate_t> list;
  list.reserve(items.size());
  for (const StartEstimate& item : items) list.push_back(xce_estimate_t{item.job, item.start_ms});
  xcecli_estimates(ctx_, epoch, list.data(), list.size());
}

void XcePort::heartbeat() { xcecli_heartbeat(ctx_); }

uint64_t XcePort::generation() { return xcecli_generation(ctx_); }

std::string XcePort::last_error() {
  xce_error_t error = {};
  xcecli_last_error(&error);
  return absl::StrCat(xce_errname(error.status), ": ", error.message,
                      error.trail[0] != 0 ? " [" : "", error.trail, error.trail[0] != 0 ? "]" : "");
}

}  // namespace xce::sched
