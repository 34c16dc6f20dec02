/* Submits a job and shows its state: the smallest whole program on libxce.
 *   submit HOST:PORT[,HOST:PORT...] COMMAND [ARGUMENT...] */
#include <stdio.h>
#include <string.h>

#include "xce/client.h"
#include "xce/cluster.h"

static int fail(const char* what) {
  xce_error_t error;
  xcecli_last_error(&error);
  fprintf(stderr, "%s: %s (%s)\n", what, error.message, xce_errname(error.status));
  return 1;
}

int main(int argc, char** argv) {
  xce_cluster_config_t cluster;
  xce_client_config_t config;
  xcecli_ctx_t ctx;
  xce_job_spec_t spec;
  xce_submitted_t submitted;
  xce_job_page_t* page = NULL;
  char words[256];
  int result = 0;

  if (argc < 3) {
    fprintf(stderr, "usage: %s HOST:PORT[,HOST:PORT...] COMMAND [ARGUMENT...]\n", argv[0]);
    return 2;
  }
  xce_client_config_init(&config);
  if (xce_parse_peers(argv[1], &cluster, words, sizeof words) != 0) {
    fprintf(stderr, "%s\n", words);
    return 2;
  }
  xce_cluster_config_to_client_config(&cluster, &config);
  if (xcecli_ctx_init(&ctx, &config) != 0) return 2;

  xce_job_spec_init(&spec);
  spec.args = (const char* const*)(argv + 2);
  spec.nargs = (size_t)(argc - 2);
  if (xcecli_start(ctx) != 0) result = fail("connect");
  if (result == 0 && xcecli_jobsub(ctx, &spec, &submitted) != 0) result = fail("submit");
  if (result == 0 && xcecli_jobinfo(ctx, submitted.job_id, &page) != 0) result = fail("jobinfo");
  if (result == 0 && page->njobs == 1)
    printf("job %llu is in state %d\n", (unsigned long long)submitted.job_id,
           (int)page->jobs[0].state);
  xce_free_job_page(page);
  xcecli_ctx_free(ctx);
  return result;
}
