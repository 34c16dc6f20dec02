// The worker's side of the launcher process: starts it, asks it for shepherds, starts it again
// should it die. Not thread safe: the supervisor's loop owns it.
#ifndef XCE_WORKER_AGENT_LAUNCHER_CLIENT_H_
#define XCE_WORKER_AGENT_LAUNCHER_CLIENT_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/lifecycle/lifecycle.h"

namespace xce::worker {

class LauncherClient {
 public:
  struct Answer {
    Key key;
    pid_t pid = 0;  // of the shepherd; 0: none was started
    bool launched_before = false;
    std::string error;
  };

  // `binary`: path of xce_shepherd.
  LauncherClient(std::string binary, std::string data_dir)
      : binary_(std::move(binary)), data_dir_(std::move(data_dir)) {}
  ~LauncherClient();

  // Starts the launcher process. NotFound when the binary cannot be run.
  absl::Status start();
  // Descriptor to wait on for answers.
  int fd() const { return fd_; }
  // Asks for a shepherd. ResourceExhausted: ask again later. Unavailable: the launcher is gone;
  // start() it anew and ask again.
  absl::Status ask(Key key);
  // Takes in the answers that have come. False when the launcher is gone.
  bool read_answers(std::vector<Answer>* out);

 private:
  void stop();

  const std::string binary_, data_dir_;
  int fd_ = -1;
  pid_t pid_ = 0;
};

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_LAUNCHER_CLIENT_H_
