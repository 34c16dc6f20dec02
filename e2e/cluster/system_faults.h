// A daemon whose wall clock jumps and whose disk is slow or fails, without root: a preloaded
// library reads from a shared page what is wrong now. I/O.
#ifndef XCE_E2E_CLUSTER_SYSTEM_FAULTS_H_
#define XCE_E2E_CLUSTER_SYSTEM_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace xce::e2e {

class SystemFaults {
 public:
  // `path` is made; a test that uses this has //e2e/cluster:libsystem_faults.so among its data.
  explicit SystemFaults(std::string path);
  ~SystemFaults();
  SystemFaults(const SystemFaults&) = delete;
  SystemFaults& operator=(const SystemFaults&) = delete;

  absl::Status status() const;
  // What the daemon needs in its environment. Empty under the address sanitizer, which does not
  // share the first place among preloaded libraries: nothing is wrong with the daemon then.
  std::vector<std::string> environment() const;
  void set_clock_ms(int64_t ahead) { write(0, ahead); }  // whole seconds count
  void set_write_delay_ms(int64_t delay) { write(1, delay); }
  void set_write_error(int error) { write(2, error); }  // errno of every write to a file; 0: none
  bool works() const { return !library_.empty(); }      // false under a sanitizer

 private:
  void write(int which, int64_t value);

  const std::string path_;
  std::string library_;
  int fd_ = -1;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_SYSTEM_FAULTS_H_
