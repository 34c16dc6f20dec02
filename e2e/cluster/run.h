// Runs a program to its end and gives its exit code and output: how a person uses a command. I/O.
#ifndef XCE_E2E_CLUSTER_RUN_H_
#define XCE_E2E_CLUSTER_RUN_H_

#include <string>
#include <vector>

#include "e2e/cluster/process.h"

namespace xce::e2e {

struct Finished {
  int code = -1;    // exit code, 128 + signal, or -1 when the limit ended it
  std::string out;  // standard output
  std::string err;  // standard error
};

// `program` as for find_program; `env` holds KEY=VALUE, which win over the caller's. `input` goes
// to standard input.
Finished run(const std::string& program, const std::vector<std::string>& args,
             const std::vector<std::string>& env = {}, const std::string& input = "",
             milliseconds limit = milliseconds(60000));

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_RUN_H_
