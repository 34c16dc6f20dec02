// Preloaded into a daemon under test: shifts its wall clock and slows its disk, as the file that
// XCE_SYSTEM_FAULTS names says at each moment (struct SystemFaults in system_faults.h).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* faults;  // [0] milliseconds of the clock, [1] of each write
static int (*real_clock_gettime)(clockid_t, struct timespec*);
static ssize_t (*real_pwrite)(int, const void*, size_t, off_t);

__attribute__((constructor)) static void load(void) {
  real_clock_gettime = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  real_pwrite = (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  const char* const path = getenv("XCE_SYSTEM_FAULTS");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* const at = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) faults = at;
  close(fd);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  if (real_clock_gettime == NULL) load();
  const int rv = real_clock_gettime(clock, out);
  if (rv == 0 && clock == CLOCK_REALTIME && faults != NULL) out->tv_sec += faults[0] / 1000;
  return rv;
}

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  if (real_pwrite == NULL) load();
  const int64_t delay_ms = faults == NULL ? 0 : faults[1];
  if (delay_ms > 0) {
    const struct timespec time = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    nanosleep(&time, NULL);
  }
  return real_pwrite(fd, bytes, n, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t n, off_t offset) {
  return pwrite(fd, bytes, n, offset);
}
