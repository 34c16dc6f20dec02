// A client's request, each operation of it: read, and as a log entry applied to a state, whoever
// sends it. The first byte is the sender's role.
#include "controller/service/request.h"
#include "controller/service/wire.h"
#include "controller/service/writes.h"
#include "fuzz/fuzz.h"
#include "fuzz/state_check.h"
#include "libxce/wire/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xce::fuzz::require;
  xce::fuzz::Input input(xce::fuzz::view(data, size));
  const auto role = static_cast<xce::Role>(input.byte() % 6);
  xce::service::Decoded decoded;
  if (!xce::service::decode_request(xce::fuzz::words(input.rest()), &decoded).ok()) return 0;
  const xce::service::Request& request = decoded.request;
  const auto* op = std::get_if<xce::Op>(&request.what);
  if (op == nullptr || xce::service::guess_bytes(*op) > (size_t{3} << 20)) return 0;

  xce::Entry entry;
  entry.time_ms = 1700000001000;
  entry.commands.resize(1);
  xce::Command& command = entry.commands[0];
  command.client = request.client;
  command.op_seq = request.op_seq;
  command.lowest_unanswered = request.lowest_unanswered;
  command.birth = request.birth;
  command.op_hash = request.op_hash;
  command.who = xce::fuzz::identity(role);
  command.op = *op;
  const std::string bytes = xce::wire::encode_entry(entry);
  xce::Entry read;
  try {
    read = xce::wire::decode_entry(bytes);
  } catch (const xce::wire::CodecError& error) {
    require(false, std::string("what was proposed can be applied: ") + error.what());
  }
  const auto state = xce::fuzz::small_state();
  const auto applied = state->apply(state->applied() + 1, read);
  require(applied.results.size() == 1, "one result a command");
  xce::fuzz::check_state(*state);
  // The same on every controller.
  const auto other = xce::fuzz::small_state();
  other->apply(other->applied() + 1, read);
  require(other->fingerprint() == state->fingerprint(), "the same log gives the same state");
  return 0;
}
