// The user's and the system's configuration file (TOML), through a file without a name.
#include <sys/mman.h>
#include <unistd.h>

#include "cli/settings.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("config", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const auto masters = xce::cli::find_masters("", {path});
  if (!masters.ok())
    xce::fuzz::require(std::string(masters.status().message()).find(path) != std::string::npos,
                       "a refusal names the file");
  (void)xce::cli::find_tls({}, {path});
  close(fd);
  return 0;
}
