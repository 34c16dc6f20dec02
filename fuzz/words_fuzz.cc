// What people type: durations, sizes, arrays, job ids, resources, signals, quoted words.
#include "cli/parse.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace xce::cli;  // NOLINT: a test of one header
  using xce::fuzz::require;
  const std::string_view text = xce::fuzz::view(data, size);
  if (const auto seconds = parse_duration_s(text); seconds.ok())
    require(*seconds >= 1, "a duration is at least a second");
  if (const auto ms = parse_duration_ms(text); ms.ok())
    require(*ms >= 1, "a duration is at least a millisecond");
  if (const auto memory = parse_memory_mb(text); memory.ok())
    require(*memory >= 1, "a size is at least a MiB");
  if (const auto n = parse_number(text, -5, 5); n.ok())
    require(*n >= -5 && *n <= 5, "a number is within its bounds");
  if (const auto array = parse_array(text); array.ok())
    require(!array->indices.empty() && array->indices.size() <= kMaxArrayTasks,
            "an array has one to kMaxArrayTasks tasks");
  (void)parse_job_ref(text);
  (void)parse_gres(text);
  (void)parse_signal(text);
  (void)parse_warning(text);
  (void)split_words(text);
  (void)split_commas(text);
  (void)nearest(text.substr(0, 64), {"submit", "jobs", "cluster"});
  return 0;
}
