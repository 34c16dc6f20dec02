// Child processes of a test: start, signal, wait; and a clean end for everything that they left
// behind. I/O, one thread.
#ifndef XCE_E2E_CLUSTER_PROCESS_H_
#define XCE_E2E_CLUSTER_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace xce::e2e {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Calls `ready` every few milliseconds until it is true (true) or `limit` has passed (false). The
// one way to wait for a state.
bool wait_until(const std::function<bool()>& ready, milliseconds limit);

// The path of a program of this build ("controller/xce_controller"): under the test's runfiles, or
// beside this program in the build's output. Empty when it is nowhere.
std::string find_program(const std::string& name);

// A daemon under test. It dies with its parent. Its output goes to a log file, appended.
class Process {
 public:
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  absl::Status start(const std::vector<std::string>& argv, const std::string& log_path,
                     const std::vector<std::string>& extra_env = {});
  bool alive();  // reaps an ended one
  pid_t pid() const { return pid_; }
  void signal(int number);
  // Sends SIGKILL and reaps.
  void kill9();
  // Sends SIGTERM; after `grace` SIGKILL. Returns the exit code, 128 + signal, or -1 when it was
  // not running.
  int terminate(milliseconds grace = milliseconds(5000));
  // Waits for the end; the exit code (128 + signal), or -1 at the limit.
  int wait(milliseconds limit);

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

// Makes this process inherit orphans of its children (jobs outlive their worker daemon), so that
// kill_descendants finds them.
void become_subreaper();
// Kills and reaps every descendant of this process; for the end of a test. Returns how many there
// were.
int kill_descendants();
// Descendants that are alive now: pid and command line.
std::vector<std::string> living_descendants();

// A fresh directory under TEST_TMPDIR, TMPDIR or /tmp. Short, since Unix socket paths are.
std::string make_temp_dir(const std::string& prefix);
void remove_tree(const std::string& path);
// A TCP port on 127.0.0.1 that nobody listens on now.
uint16_t free_port();
std::string read_file(const std::string& path);

}  // namespace xce::e2e

#endif  // XCE_E2E_CLUSTER_PROCESS_H_
