// A snapshot's state: it is read or refused. Checksums guard it, so it may contradict itself only
// where its writer did; one that does not is kept by the next snapshot.
#include "controller/service/state_codec.h"
#include "fuzz/fuzz.h"
#include "fuzz/state_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xce::fuzz::Input input(xce::fuzz::view(data, size));
  const auto state = xce::service::load_state([&](char* to, size_t n) {
    const std::string_view piece = input.take(n);
    return piece.copy(to, piece.size());
  });
  if (state.ok() && (*state)->check_invariants().empty()) xce::fuzz::check_state(**state);
  return 0;
}
