/* Candidate lists: the one syntax `[name=]host:port[,...]` for every daemon and tool (A1.5, A6.1).
 * Pure, no sockets. */
#ifndef XCE_CLUSTER_H_
#define XCE_CLUSTER_H_

#include "xce/client.h"
#include "xce/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  char name[64]; /* "" when none was given; a controller's peers name their node id here */
  char host[XCE_MAXHOSTNAME_LEN];
  uint16_t port;
} xce_candidate_t;

typedef struct {
  int candidates_count;
  xce_candidate_t candidates[MAX_HA_CANDIDATES];
} xce_cluster_config_t;

/* Parses `[name=]host:port[,...]` ([v6]:port for IPv6 addresses). 0, or -EINVAL with a message in
 * err (may be NULL) that names the offending entry and what is wrong with it. */
XCE_API int xce_parse_peers(const char* text, xce_cluster_config_t* out, char* err, size_t err_len);

/* Checks counts, ports, names and duplicates. 0, or -EINVAL with a message in err. */
XCE_API int xce_cluster_config_validate(const xce_cluster_config_t* cfg, char* err, size_t err_len);

/* Copies the candidates, in order, into out's masters; never more than N_MAX_MASTERS (a longer list
 * is cut with a WARN log line). Leaves every other field of out alone. cfg must have passed
 * xce_cluster_config_validate. 0, or -EINVAL (A1.1-A1.7). */
XCE_API int xce_cluster_config_to_client_config(const xce_cluster_config_t* cfg,
                                                xce_client_config_t* out);

#ifdef __cplusplus
}
#endif

#endif /* XCE_CLUSTER_H_ */
