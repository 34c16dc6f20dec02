// The launcher and the status file's lock: see shepherd.h.
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "worker/shepherd/job_files.h"
#include "worker/shepherd/shepherd.h"

namespace xce::worker {
namespace {

void close_all_but(int keep) {
  if (keep > 3) syscall(SYS_close_range, 3u, static_cast<unsigned>(keep - 1), 0u);
  syscall(SYS_close_range, static_cast<unsigned>(keep + 1), ~0u, 0u);
}

// In the fork: becomes the shepherd and never returns. _exit, because nothing of the launcher's is
// to be flushed.
[[noreturn]] void become_shepherd(const std::string& data_dir, const std::string& name,
                                  int status_fd) {
  setsid();
  const int null =
      open("/dev/null", O_RDWR);  // the worker's terminal or pipe must not be kept open by a job
  for (int fd = 0; null >= 0 && fd < 3; ++fd) dup2(null, fd);
  close_all_but(status_fd);
  _exit(shepherd_main(data_dir, name, status_fd));
}

std::string launch(const std::string& data_dir, const std::string& name) {
  const std::string job_dir = data_dir + "/jobs/" + name;
  const int status_fd = create_status_file(job_dir);
  if (status_fd == -EEXIST) return name + " again";
  if (status_fd < 0)
    return name + " error cannot write " + job_dir + "/" + kStatusFile + ": " +
           strerror(-status_fd);
  const pid_t pid = fork();
  if (pid == 0) become_shepherd(data_dir, name, status_fd);
  const int error = errno;
  if (pid < 0) unlink((job_dir + "/" + kStatusFile).c_str());
  close(status_fd);  // the shepherd's copy keeps the lock
  if (pid < 0) return name + " error cannot start a process: " + strerror(error);
  return name + " ok " + std::to_string(pid);
}

}  // namespace

namespace {

// Takes up the status file of an earlier job, emptied: making and removing files is what costs most
// in a short job's life.
int take_spare(const std::string& path, const std::string& spare) {
  const int fd = open(spare.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  static const char zeros[kStatusBytes] = {};
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, kStatusBytes) == 0 &&
      pwrite(fd, zeros, kStatusBytes, 0) == kStatusBytes &&
      renameat2(AT_FDCWD, spare.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  return -error;
}

}  // namespace

int create_status_file(const std::string& job_dir) {
  // Locked and filled under another name first: who sees the file under its own name sees it locked
  // by the living.
  const std::string path = job_dir + "/" + kStatusFile;
  const int spare_fd = take_spare(path, job_dir + "/" + kSpareStatusFile);
  if (spare_fd >= 0 || spare_fd == -EEXIST) return spare_fd;
  const std::string fresh = path + ".new." + std::to_string(getpid());
  unlink(fresh.c_str());
  const int fd = open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -errno;
  int error = 0;
  if (flock(fd, LOCK_EX) != 0) error = errno;
  if (error == 0 && fallocate(fd, 0, 0, kStatusBytes) != 0 && errno != EOPNOTSUPP &&
      errno != ENOSYS) {
    error = errno;
  }
  if (error == 0 &&
      renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    error = errno;
  }
  if (error == 0) return fd;
  unlink(fresh.c_str());
  close(fd);
  return -error;
}

bool shepherd_alive(const std::string& job_dir) {
  const int fd = open((job_dir + "/" + kStatusFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return locked;
}

int launcher_main(const std::string& data_dir, int socket) {
  setsid();  // what is typed at the worker's terminal is not for the shepherds
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  char buffer[256];
  for (;;) {
    const ssize_t n = recv(socket, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    const std::string answer = launch(data_dir, std::string(buffer, static_cast<size_t>(n)));
    if (send(socket, answer.data(), answer.size(), 0) < 0 && errno == EPIPE) return 0;
  }
}

}  // namespace xce::worker
