#include "e2e/cluster/client.h"

#include <xce/cluster.h>

#include <cstdio>
#include <cstdlib>

namespace xce::e2e {

Client::Client(const std::string& masters, int deadline_ms, const ClientTls& tls) {
  xce_cluster_config_t cluster;
  char error[256] = "";
  xce_client_config_t config;
  xce_client_config_init(&config);
  if (xce_parse_peers(masters.c_str(), &cluster, error, sizeof error) != 0 ||
      xce_cluster_config_validate(&cluster, error, sizeof error) != 0 ||
      xce_cluster_config_to_client_config(&cluster, &config) != 0) {
    fprintf(stderr, "masters '%s': %s\n", masters.c_str(), error);
    std::exit(1);
  }
  config.role = HostRole_user;
  config.call_deadline_ms = deadline_ms;
  xce_client_config_set_tls(&config, tls.ca.c_str(), tls.cert.c_str(), tls.key.c_str());
  if (xcecli_ctx_init(&ctx_, &config) != 0) {
    xce_error_t why;
    xcecli_last_error(&why);
    fprintf(stderr, "xcecli_ctx_init failed: %s\n", why.message);
    std::exit(1);
  }
  xcecli_start(ctx_);
}

Client::~Client() {
  xcecli_stop(ctx_);
  xcecli_ctx_free(ctx_);
}

int64_t Client::submit(const std::string& command, const std::string& name,
                       const std::string& work_dir, const std::string& key) {
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* args[] = {"/bin/sh", "-c", command.c_str()};
  spec.args = args;
  spec.nargs = 3;
  spec.name = name.c_str();
  spec.work_dir = work_dir.c_str();
  spec.submit_key = key.empty() ? nullptr : key.c_str();
  return submit(spec);
}

int64_t Client::submit(const xce_job_spec_t& spec, uint32_t* count) {
  xce_submitted_t out{};
  const int rc = xcecli_jobsub(ctx_, &spec, &out);
  if (count != nullptr) *count = out.count;
  if (rc < 0) {
    xce_error_t error;
    xcecli_last_error(&error);
    fprintf(stderr, "submission: %s: %s\n", xce_errname(rc), error.message);
  }
  return rc < 0 ? rc : static_cast<int64_t>(out.job_id);
}

int Client::read_pages(List list, bool stale_ok, std::map<uint64_t, JobRow>* rows) {
  xce_job_filter_t filter{};
  filter.stale_ok = stale_ok;
  for (;;) {
    xce_job_page_t* page = nullptr;
    const int rc = list(ctx_, &filter, &page);
    if (rc < 0) return rc;
    for (size_t i = 0; i < page->njobs; ++i) {
      const xce_job_t& job = page->jobs[i];
      JobRow& row = (*rows)[job.id];
      row.id = job.id;
      row.name = job.spec.name;
      row.reason = job.reason;
      row.host = job.nallocs > 0 ? job.allocs[0].host : "";
      row.state = job.state;
      row.exit_code = job.exit_code;
      row.attempt = job.attempt;
      row.starts = job.starts;
      row.submit_ms = job.submit_ms;
      row.start_ms = job.start_ms;
      row.end_ms = job.end_ms;
    }
    filter.after_id = page->next_after_id;
    xce_free_job_page(page);
    if (filter.after_id == 0) return 0;
  }
}

std::map<uint64_t, JobRow> Client::jobs(int* status, bool stale_ok) {
  std::map<uint64_t, JobRow> rows;
  const int rc = read_pages(xcecli_joblist, stale_ok, &rows);
  if (status != nullptr) *status = rc;
  return rows;
}

std::map<uint64_t, JobRow> Client::jobs_and_history(int* status) {
  std::map<uint64_t, JobRow> rows;
  int rc = read_pages(xcecli_joblist, false, &rows);
  if (rc >= 0) rc = read_pages(xcecli_jobhist, false, &rows);
  if (status != nullptr) *status = rc;
  return rows;
}

std::string Client::master() const {
  char out[300] = "";
  xcecli_current_master(ctx_, out, sizeof out);
  return out;
}

}  // namespace xce::e2e
