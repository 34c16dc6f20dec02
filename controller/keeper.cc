#include "controller/keeper.h"

#include <dirent.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>

namespace xce {
namespace {

// Waits until the kernel has marked the futex of a robust mutex as that of a dead thread.
void wait_for_death(uint32_t* word) {
  for (;;) {
    uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if ((seen & FUTEX_OWNER_DIED) != 0 || (seen & FUTEX_TID_MASK) == 0) return;
    if ((seen & FUTEX_WAITERS) == 0) {  // without it the kernel wakes nobody
      __atomic_compare_exchange_n(word, &seen, seen | FUTEX_WAITERS, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
      continue;
    }
    ::syscall(SYS_futex, word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
}

void shut_all_sockets() {
  DIR* const dir = ::opendir("/proc/self/fd");
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > STDERR_FILENO) ::shutdown(fd, SHUT_RDWR);  // no socket: an error, and no harm
  }
}

[[noreturn]] void run_keeper(pid_t parent, uint32_t* word) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "xce_keeper");
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::signal(number, SIG_IGN);
  if (::getppid() == parent) wait_for_death(word);
  shut_all_sockets();
  ::_exit(0);
}

}  // namespace

bool start_keeper() {
  void* const page = ::mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  auto* const alive = static_cast<pthread_mutex_t*>(page);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(alive, &attributes);
  pthread_mutexattr_destroy(&attributes);
  pthread_mutex_lock(alive);  // for as long as this thread lives
  const pid_t parent = ::getpid();
  // As fork(), but with one table of descriptors for both.
  const long child = ::syscall(SYS_clone, CLONE_FILES, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) run_keeper(parent, reinterpret_cast<uint32_t*>(&alive->__data.__lock));
  return child > 0;
}

}  // namespace xce
