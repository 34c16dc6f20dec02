/* Limits and defaults of XCE: the one place where they are set. */
#ifndef XCE_CONFIG_H_
#define XCE_CONFIG_H_

#include <stdint.h>

#define MAX_HA_CANDIDATES 4     /* controllers in a candidate list */
#define XCE_MAXHOSTNAME_LEN 256 /* bytes, with the final NUL */
#define XCE_MAX_PATH_LEN 1024   /* bytes, with the final NUL: paths in settings */
#define XCE_DEFAULT_PORT 9990   /* controllers: clients and peers */
#define XCE_DEFAULT_HOST "localhost"
#define XCE_DEFAULT_CALL_DEADLINE_MS 120000
#define XCE_DEDUP_WINDOW 1024 /* writes of one client that may be unanswered at once */
#define XCE_MAX_SCRIPT_BYTES (1024 * 1024)
#define XCE_MAX_WATCHED_JOBS 4096 /* of one xcecli_subscribe_jobs */
#define XCE_MAX_LOG_WAIT_MS 10000 /* of one xcecli_joblog_wait */

#endif /* XCE_CONFIG_H_ */
