// A log entry: read and applied.
#include "fuzz/fuzz.h"
#include "fuzz/state_check.h"
#include "libxce/wire/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xce::Entry entry;
  try {
    entry = xce::wire::decode_entry(xce::fuzz::view(data, size));
  } catch (const xce::wire::CodecError&) {
    return 0;
  }
  const auto state = xce::fuzz::small_state();
  const auto applied = state->apply(state->applied() + 1, entry);
  xce::fuzz::require(applied.results.size() == entry.commands.size(), "one result a command");
  xce::fuzz::check_state(*state);
  return 0;
}
