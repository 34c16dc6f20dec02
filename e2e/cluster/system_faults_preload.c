// Preloaded into a daemon under test: shifts its wall clock, slows its disk and makes it fail, as
// the file that XCE_SYSTEM_FAULTS names says at each moment (struct SystemFaults in
// system_faults.h).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

// [0] milliseconds of the clock, [1] milliseconds of each write, [2] errno of each write to a file
static const volatile int64_t* faults;
static int (*real_clock_gettime)(clockid_t, struct timespec*);
static ssize_t (*real_pwrite)(int, const void*, size_t, off_t);
static ssize_t (*real_write)(int, const void*, size_t);
static int (*real_fsync)(int);

__attribute__((constructor)) static void load(void) {
  real_clock_gettime = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  real_pwrite = (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  real_write = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  const char* const path = getenv("XCE_SYSTEM_FAULTS");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* const at = mmap(NULL, 3 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) faults = at;
  close(fd);
}

// Whether a write to this file is to fail, with errno set. What the daemon says of itself goes on.
static int fails(int fd) {
  struct stat file;
  if (faults == NULL || faults[2] == 0 || fd <= STDERR_FILENO) return 0;
  if (fstat(fd, &file) != 0 || (!S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode))) return 0;
  errno = (int)faults[2];
  return 1;
}

static void linger(void) {
  const int64_t delay_ms = faults == NULL ? 0 : faults[1];
  if (delay_ms <= 0) return;
  // In small steps: a disk that is well again answers at once.
  const struct timespec step = {0, 10 * 1000000};
  for (int64_t waited_ms = 0; waited_ms < delay_ms && faults[1] > 0; waited_ms += 10)
    nanosleep(&step, NULL);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  if (real_clock_gettime == NULL) load();
  const int rv = real_clock_gettime(clock, out);
  if (rv == 0 && clock == CLOCK_REALTIME && faults != NULL) out->tv_sec += faults[0] / 1000;
  return rv;
}

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  if (real_pwrite == NULL) load();
  linger();
  return fails(fd) ? -1 : real_pwrite(fd, bytes, n, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t n, off_t offset) {
  return pwrite(fd, bytes, n, offset);
}

ssize_t write(int fd, const void* bytes, size_t n) {
  if (real_write == NULL) load();
  return fails(fd) ? -1 : real_write(fd, bytes, n);
}

int fsync(int fd) {
  if (real_fsync == NULL) load();
  return fails(fd) ? -1 : real_fsync(fd);
}
