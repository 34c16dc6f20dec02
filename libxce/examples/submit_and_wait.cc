// Submits a job under a key and waits for its end, through any number of failovers: libxce from
// C++.
//   submit_and_wait HOST:PORT[,HOST:PORT...] KEY COMMAND [ARGUMENT...]
// Run again with the same key (after a crash, say), it waits for the same job.
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "xce/client.h"
#include "xce/cluster.h"

namespace {

struct Free {
  void operator()(xcecli_ctx_t ctx) const { xcecli_ctx_free(ctx); }
  void operator()(xce_job_page_t* page) const { xce_free_job_page(page); }
};
using Context = std::unique_ptr<xcecli_ctx, Free>;
using Page = std::unique_ptr<xce_job_page_t, Free>;

int fail(const char* what) {
  xce_error_t error;
  xcecli_last_error(&error);
  const char* fate =
      error.outcome == XCE_OUTCOME_MAYBE ? "; it may have happened all the same" : "";
  std::fprintf(stderr, "%s: %s (%s)%s\n", what, error.message, xce_errname(error.status), fate);
  return 1;
}

// The job of this key: a new one, or the one that an earlier run submitted. 0 when there is none.
uint64_t submit(xcecli_ctx_t ctx, const xce_job_spec_t& spec) {
  xce_submitted_t made;
  for (;;) {
    const int rc = xcecli_jobsub(ctx, &spec, &made);
    if (rc == 0) return made.job_id;
    xce_error_t error;
    xcecli_last_error(&error);
    if (rc == -E_XCE_DUP_JOB && error.same_body) return error.job_id;
    // With a key it is always safe to submit again, even when the outcome is unknown.
    if (rc != -E_XCE_NOT_READY && rc != -E_XCE_OUTCOME_UNKNOWN) return 0;
    std::fprintf(stderr, "waiting for the cluster: %s\n", error.message);
  }
}

bool over(xce_job_state_t state) { return state >= XCE_JOB_COMPLETED && state <= XCE_JOB_LOST; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s HOST:PORT[,HOST:PORT...] KEY COMMAND [ARGUMENT...]\n", argv[0]);
    return 2;
  }
  xce_cluster_config_t cluster;
  xce_client_config_t config;
  char words[256];
  xce_client_config_init(&config);
  if (xce_parse_peers(argv[1], &cluster, words, sizeof words) != 0) {
    std::fprintf(stderr, "%s\n", words);
    return 2;
  }
  xce_cluster_config_to_client_config(&cluster, &config);
  xcecli_ctx_t raw = nullptr;
  if (xcecli_ctx_init(&raw, &config) != 0) return 2;
  const Context ctx(raw);
  xcecli_start(ctx.get());  // not reached yet? The calls below go on trying.

  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  spec.submit_key = argv[2];
  spec.args = argv + 3;
  spec.nargs = static_cast<size_t>(argc - 3);
  const uint64_t id = submit(ctx.get(), spec);
  if (id == 0) return fail("submit");

  for (;;) {
    xce_job_page_t* page = nullptr;
    const int rc = xcecli_jobinfo(ctx.get(), id, &page);
    if (rc != 0 && !xce_is_retriable(rc)) return fail("jobinfo");
    const Page jobs(page);
    if (rc == 0 && jobs->njobs == 1 && over(jobs->jobs[0].state)) {
      std::printf("job %llu ended with exit code %d\n", static_cast<unsigned long long>(id),
                  jobs->jobs[0].exit_code);
      return jobs->jobs[0].state == XCE_JOB_COMPLETED ? 0 : 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}
