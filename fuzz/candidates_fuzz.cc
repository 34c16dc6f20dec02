// Candidate lists and operation ids, as people and files give them.
#include "fuzz/fuzz.h"
#include "xce/client.h"
#include "xce/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xce::fuzz::require;
  const std::string text(xce::fuzz::view(data, size));
  xce_cluster_config_t cluster;
  char error[256] = "";
  if (xce_parse_peers(text.c_str(), &cluster, error, sizeof error) == 0) {
    require(cluster.candidates_count >= 1 && cluster.candidates_count <= MAX_HA_CANDIDATES,
            "a list has one to MAX_HA_CANDIDATES candidates");
    require(xce_cluster_config_validate(&cluster, error, sizeof error) == 0,
            std::string("what was parsed is valid: ") + error);
    xce_client_config_t config;
    xce_client_config_init(&config);
    require(xce_cluster_config_to_client_config(&cluster, &config) == 0, "and can be used");
  } else {
    require(error[0] != '\0', "a refusal has words");
  }
  xce_op_id_t id;
  if (xce_op_id_parse(text.c_str(), &id) == 0) {
    char again[XCE_OP_ID_TEXT_LEN];
    require(xce_op_id_text(&id, again, sizeof again) == 0 && text.c_str() == std::string(again),
            "an operation id has one text");
  }
  return 0;
}
