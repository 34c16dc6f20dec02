// A job script: is it one, and what do its #XCE lines ask for, up to the job that they make.
#include "cli/script.h"
#include "cli/submit_options.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace xce::cli;  // NOLINT: a test of two headers
  const std::string bytes(xce::fuzz::view(data, size));
  if (!check_script("job.sh", bytes, 64 * 1024).ok()) return 0;
  const auto options = options_of_script("job.sh", bytes);
  if (!options.ok()) return 0;
  JobSpecHolder holder;
  holder.set_what(bytes, {"a"});
  holder.set_default_name("job.sh");
  holder.set_current_dir("/tmp");
  const char* const environment[] = {"HOME=/", nullptr};
  if (!holder.set_options(*options).ok() || !holder.set_environment(*options, environment).ok())
    return 0;
  const auto spec = holder.spec();
  if (spec.ok()) xce::fuzz::require((*spec)->cpus >= 1, "a job has a processor");
  return 0;
}
