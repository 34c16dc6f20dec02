// libxce for C++ tests: owns a context, throws nothing, keeps the C statuses.
#ifndef XCE_E2E_CLUSTER_CLIENT_H_
#define XCE_E2E_CLUSTER_CLIENT_H_

#include <xce/client.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xce::e2e {

struct JobRow {  // what tests ask of a job
  uint64_t id = 0;
  std::string name, reason, host;
  xce_job_state_t state = XCE_JOB_PENDING;
  int exit_code = 0;
  uint32_t attempt = 0, starts = 0;
  int64_t submit_ms = 0, start_ms = 0, end_ms = 0;
};

// Paths of PEM files; all empty: without TLS.
struct ClientTls {
  std::string ca, cert, key;
};

// One libxce context as role user. Thread safe like the context itself.
class Client {
 public:
  // `masters` is a candidate list. Exits the process when it is malformed.
  explicit Client(const std::string& masters, int deadline_ms = 30000, const ClientTls& tls = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  xcecli_ctx_t ctx() const { return ctx_; }
  // Submits `/bin/sh -c command`. The job id, or a negative status.
  int64_t submit(const std::string& command, const std::string& name, const std::string& work_dir,
                 const std::string& key = "");
  int64_t submit(const xce_job_spec_t& spec, uint32_t* count = nullptr);
  // Every job, over all pages; the status is in *status (0 ok).
  std::map<uint64_t, JobRow> jobs(int* status = nullptr, bool stale_ok = false);
  // The same, and those that have ended so long ago that they are history.
  std::map<uint64_t, JobRow> jobs_and_history(int* status = nullptr);
  int64_t generation() const { return static_cast<int64_t>(xcecli_generation(ctx_)); }
  std::string master() const;

 private:
  using List = int (*)(xcecli_ctx_t, const xce_job_filter_t*, xce_job_page_t**);
  int read_pages(List list, bool stale_ok, std::map<uint64_t, JobRow>* rows);

  xcecli_ctx_t ctx_ = nullptr;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_CLIENT_H_
