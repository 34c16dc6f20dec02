// The JSON that `--output json` prints: stable snake_case names, documented in docs/cli.md. Pure.
#ifndef XCE_CLI_JSON_H_
#define XCE_CLI_JSON_H_

#include <xce/types.h>

#include <nlohmann/json.hpp>
#include <string>

namespace xce::cli {

// Keys stay in the order in which they are documented.
using Json = nlohmann::ordered_json;

// full: also script, args and env.
Json job_json(const xce_job_t& job, bool full);
Json host_json(const xce_host_t& host);
Json queue_json(const xce_queue_t& queue);
Json reservation_json(const xce_reservation_t& reservation);
Json cluster_json(const xce_cluster_status_t& status);

// Compact text; bytes that are no UTF-8 become U+FFFD.
std::string dump(const Json& json, bool pretty);

}  // namespace xce::cli

#endif  // XCE_CLI_JSON_H_
