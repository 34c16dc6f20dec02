// See launcher_client.h.
#include "worker/agent/launcher_client.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/shepherd/job_files.h"

namespace xce::worker {

LauncherClient::~LauncherClient() { stop(); }

// The launcher ends by itself when its socket closes.
void LauncherClient::stop() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

absl::Status LauncherClient::start() {
  stop();
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot make a socket for the launcher: ", std::strerror(errno)));
  }
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  constexpr int kChildFd = 3;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fds[1], kChildFd);  // also clears close-on-exec
  posix_spawnattr_t attr;
  posix_spawnattr_init(&attr);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setflags(&attr,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::string program = binary_, verb = "launcher", fd_text = std::to_string(kChildFd),
              data_dir = data_dir_;
  char* argv[] = {program.data(), verb.data(), fd_text.data(), data_dir.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, binary_.c_str(), &actions, &attr, argv, environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  if (error != 0) {
    close(fds[0]);
    return absl::NotFoundError(absl::StrCat("cannot run ", binary_, ": ", std::strerror(error),
                                            "; give its path with --shepherd"));
  }
  fd_ = fds[0];
  pid_ = pid;
  return absl::OkStatus();
}

absl::Status LauncherClient::ask(Key key) {
  const std::string name = dir_name(key.job, key.attempt);
  if (send(fd_, name.data(), name.size(), MSG_NOSIGNAL) >= 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == ENOBUFS)
    return absl::ResourceExhaustedError("the launcher is busy");
  return absl::UnavailableError(absl::StrCat("the launcher is gone: ", std::strerror(errno)));
}

bool LauncherClient::read_answers(std::vector<Answer>* out) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    const std::string text(buffer, static_cast<size_t>(n));
    const size_t space = text.find(' ');
    Answer answer;
    if (space == std::string::npos ||
        !parse_dir_name(text.substr(0, space), &answer.key.job, &answer.key.attempt))
      continue;
    const std::string rest = text.substr(space + 1);
    if (rest.compare(0, 3, "ok ") == 0) {
      answer.pid = static_cast<pid_t>(std::atoi(rest.c_str() + 3));
    } else if (rest == "again") {
      answer.launched_before = true;
    } else {
      answer.error = rest.compare(0, 6, "error ") == 0 ? rest.substr(6) : rest;
    }
    out->push_back(std::move(answer));
  }
}

}  // namespace xce::worker
