// See xce_link.h.
#include "worker/agent/xce_link.h"

#include <spdlog/spdlog.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "libxce/base/trail.h"

namespace xce::worker {
namespace {

std::string text(const char* s) { return s == nullptr ? std::string() : std::string(s); }

std::vector<std::string> texts(const char* const* list, size_t n) {
  std::vector<std::string> out;
  for (size_t i = 0; i < n; ++i) out.push_back(text(list[i]));
  return out;
}

std::vector<Gres> gres_of(const xce_gres_t* list, size_t n) {
  std::vector<Gres> out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(
        {text(list[i].name), list[i].count, {list[i].indices, list[i].indices + list[i].nindices}});
  return out;
}

// What a worker needs of a job; the rest is left at its defaults.
Job job_of(const xce_job_t& c) {
  Job job;
  job.id = c.id;
  job.array_id = c.array_id;
  job.array_index = c.array_index;
  job.state = static_cast<JobState>(c.state);
  job.desired = static_cast<Desired>(c.desired);
  job.kill_signal = c.kill_signal;
  job.attempt = c.attempt;
  job.modify_index = c.modify_index;
  job.stdout_file = text(c.stdout_file);
  job.stderr_file = text(c.stderr_file);
  for (size_t i = 0; i < c.nallocs; ++i) {
    const xce_alloc_t& a = c.allocs[i];
    job.allocs.push_back({text(a.host), a.cpus, a.memory_mb, gres_of(a.gres, a.ngres)});
  }
  const xce_job_spec_t& s = c.spec;
  job.spec.name = text(s.name);
  job.spec.user = text(s.user);
  job.spec.uid = s.uid;
  job.spec.gid = s.gid;
  job.spec.queue = text(s.queue);
  job.spec.work_dir = text(s.work_dir);
  job.spec.stdin_path = text(s.stdin_path);
  job.spec.stdout_path = text(s.stdout_path);
  job.spec.stderr_path = text(s.stderr_path);
  job.spec.cpus = s.cpus;
  job.spec.memory_mb = s.memory_mb;
  job.spec.nodes = s.nodes;
  job.spec.requeue = s.requeue;
  job.spec.time_limit_s = s.time_limit_s;
  job.spec.warn_signal = s.warn_signal;
  job.spec.warn_before_s = s.warn_before_s;
  if (s.step.job_id != 0) {
    job.spec.step =
        std::make_shared<const Step>(Step{s.step.job_id, texts(s.step.hosts, s.step.nhosts),
                                          s.step.attempt, s.step.array_id, s.step.array_index});
  }
  auto body = std::make_shared<JobBody>();
  if (s.script != nullptr) body->script.assign(static_cast<const char*>(s.script), s.script_len);
  body->args = texts(s.args, s.nargs);
  body->env = texts(s.env, s.nenv);
  job.spec.body = std::move(body);
  return job;
}

xce_report_t c_report(const Report& report) {
  xce_report_t c{};
  c.outbox_seq = report.outbox_seq;
  c.kind = static_cast<xce_notify_kind_t>(report.kind);
  c.job_id = report.job;
  c.attempt = report.attempt;
  c.exit_code = report.exit_code;
  c.exit_signal = report.exit_signal;
  c.outcome = static_cast<xce_job_state_t>(report.outcome);
  c.usage = {report.usage.cpu_ms, report.usage.peak_memory_kb, report.usage.wall_ms};
  c.message = report.message.c_str();
  c.time_ms = report.time_ms;
  c.stdout_file = report.stdout_file.c_str();
  c.stderr_file = report.stderr_file.c_str();
  return c;
}

constexpr uint32_t kAlive =
    (1u << XCE_JOB_STARTING) | (1u << XCE_JOB_RUNNING) | (1u << XCE_JOB_SUSPENDED);

}  // namespace

absl::StatusOr<std::unique_ptr<XceLink>> XceLink::create(const Options& options) {
  char error[512] = "";
  xce_cluster_config_t cluster{};
  if (xce_parse_peers(options.peers.c_str(), &cluster, error, sizeof error) != 0 ||
      xce_cluster_config_validate(&cluster, error, sizeof error) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--peers: ", error));
  }
  xce_client_config_t config;
  xce_client_config_init(&config);
  if (xce_cluster_config_to_client_config(&cluster, &config) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--peers: cannot use ", options.peers));
  }
  config.role = HostRole_worker;
  config.call_deadline_ms = options.call_deadline_ms;
  std::snprintf(config.name, sizeof config.name, "%s", options.host.c_str());
  if (xce_client_config_set_tls(&config, options.tls_ca.c_str(), options.tls_cert.c_str(),
                                options.tls_key.c_str()) != 0)
    return absl::InvalidArgumentError("a path among --tls-ca, --tls-cert, --tls-key is too long");
  std::unique_ptr<XceLink> link(new XceLink());
  const int status = xcecli_ctx_init(&link->ctx_, &config);
  if (status != 0) {
    xce_error_t why;
    xcecli_last_error(&why);
    return absl::InvalidArgumentError(absl::StrCat("libxce refuses its settings: ", why.message));
  }
  for (int i = 0; i < config.nmasters; ++i) {
    spdlog::info("{}",
                 candidate_line(i, config.nmasters, config.masters[i], config.master_ports[i]));
  }
  return link;
}

XceLink::~XceLink() {
  if (ctx_ != nullptr) xcecli_ctx_free(ctx_);
}

void XceLink::set_handlers(std::function<void(Pushed)> on_push,
                           std::function<void()> on_reconnect) {
  on_push_ = std::move(on_push);
  on_reconnect_ = std::move(on_reconnect);
  xcecli_set_reconnect_handler(ctx_, &XceLink::handle_reconnect, this);
  xcecli_set_push_handler(ctx_, &XceLink::handle_push, this);
}

int XceLink::handle_reconnect(xcecli_ctx_t, void* self) {
  auto* link = static_cast<XceLink*>(self);
  if (link->on_reconnect_) link->on_reconnect_();
  return 0;
}

void XceLink::handle_push(xcecli_ctx_t, const xce_event_t* event, void* self) {
  auto* link = static_cast<XceLink*>(self);
  if (!link->on_push_) return;
  switch (event->kind) {
    case XCE_EVENT_JOB:
      if (event->job != nullptr) link->on_push_(job_of(*event->job));
      break;
    case XCE_EVENT_JOB_REMOVED: link->on_push_(PushedRemoval{event->id}); break;
    case XCE_EVENT_OUTBOX_APPLIED: link->on_push_(PushedConfirmation{event->id}); break;
    case XCE_EVENT_GAP: link->on_push_(PushedGap{}); break;
    case XCE_EVENT_LOG_QUERY:
      link->on_push_(LogQuery{event->query_id, event->id, static_cast<Stream>(event->stream),
                              event->offset, event->limit, event->wait_ms});
      break;
    default: break;  // hosts, queues, the scheduler: not a worker's business
  }
}

int XceLink::start() { return xcecli_start(ctx_); }
void XceLink::stop() { xcecli_stop(ctx_); }

int XceLink::hello(HelloAnswer* out) {
  xce_hello_t hello{};
  const int status = xcecli_hello(ctx_, &hello);
  if (status >= 0) *out = {hello.outbox_applied, hello.cluster_id, hello.joined, hello.lease_ms};
  return status;
}

int XceLink::join(const HostAttrs& host, uint64_t instance, JoinAnswer* out) {
  std::vector<xce_gres_t> gres;
  for (const Gres& g : host.gres) gres.push_back({g.name.c_str(), g.count, nullptr, 0});
  xce_host_attrs_t attrs{};
  attrs.name = host.name.c_str();
  attrs.version = host.version.c_str();
  attrs.address = host.address.c_str();
  attrs.boot_id = host.boot_id.c_str();
  attrs.cpus = host.cpus;
  attrs.memory_mb = host.memory_mb;
  attrs.gres = gres.data();
  attrs.ngres = gres.size();
  attrs.worker_id = host.worker_id;
  attrs.fault = host.fault.c_str();
  xce_joined_t joined{};
  const int status = xcecli_join(ctx_, HostRole_worker, &attrs, instance, &joined);
  if (status >= 0) *out = {joined.revision, joined.outbox_applied};
  return status;
}

int XceLink::list_jobs(const std::string& host, JobId after, JobPage* out) {
  xce_job_filter_t filter{};
  filter.states = kAlive;
  filter.host = host.c_str();
  filter.after_id = after;
  filter.full = true;
  xce_job_page_t* page = nullptr;
  const int status = xcecli_joblist(ctx_, &filter, &page);
  if (status < 0) return status;
  out->jobs.clear();
  for (size_t i = 0; i < page->njobs; ++i) out->jobs.push_back(job_of(page->jobs[i]));
  out->next_after_id = page->next_after_id;
  xce_free_job_page(page);
  return 0;
}

int XceLink::job_info(JobId id, std::optional<Job>* out) {
  out->reset();
  xce_job_page_t* page = nullptr;
  const int status = xcecli_jobinfo(ctx_, id, &page);
  if (status == -E_XCE_NOENT) return 0;
  if (status < 0) return status;
  if (page->njobs > 0) *out = job_of(page->jobs[0]);
  xce_free_job_page(page);
  return 0;
}

int XceLink::notify(uint64_t instance, const std::vector<Report>& reports) {
  std::vector<xce_report_t> c;
  c.reserve(reports.size());
  for (const Report& report : reports) c.push_back(c_report(report));
  return xcecli_notify(ctx_, instance, c.data(), c.size());
}

int XceLink::answer_log(const LogChunk& chunk) {
  xce_log_chunk_t c{};
  c.query_id = chunk.query;
  c.status = chunk.status;
  c.data = reinterpret_cast<uint8_t*>(const_cast<char*>(chunk.data.data()));
  c.len = chunk.data.size();
  c.offset = chunk.offset;
  c.eof = chunk.eof;
  c.message = chunk.message.c_str();
  return xcecli_joblog_answer(ctx_, &c);
}

uint64_t XceLink::generation() { return xcecli_generation(ctx_); }

std::string XceLink::last_error() {
  xce_error_t error{};
  xcecli_last_error(&error);
  return error.message[0] != 0 ? error.message : xce_strerror(error.status);
}

std::string XceLink::last_trail() {
  xce_error_t error{};
  xcecli_last_error(&error);
  return error.trail;
}

std::string XceLink::current_master() {
  char where[XCE_MAXHOSTNAME_LEN + 16] = "";
  xcecli_current_master(ctx_, where, sizeof where);
  return where;
}

}  // namespace xce::worker
