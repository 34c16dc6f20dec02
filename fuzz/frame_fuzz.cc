// Frames and the preamble: the same bytes give the same frames, in whatever pieces they arrive.
#include "fuzz/fuzz.h"
#include "libxce/net/frame.h"

namespace {

// The frames, or how far they could be read.
std::vector<std::vector<uint64_t>> frames_of(std::string_view bytes, size_t piece, bool* error) {
  xce::net::FrameDecoder decoder;
  std::vector<std::vector<uint64_t>> out;
  *error = false;
  while (!bytes.empty() && !*error) {
    decoder.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto frame = decoder.next();
      *error = !frame.ok();
      if (*error || !frame->has_value()) break;
      xce::fuzz::require((*frame)->size() * 8 <= xce::net::kMaxFrameBeforeHello,
                         "a frame is within the limit");
      out.push_back(std::move(**frame));
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xce::fuzz::Input input(xce::fuzz::view(data, size));
  const size_t piece = 1 + input.byte();
  const std::string_view bytes = input.rest();
  const auto kind = xce::net::classify_preamble(bytes);
  if (bytes.size() >= xce::net::kPreambleSize)
    xce::fuzz::require(kind != xce::net::Preamble::kIncomplete, "a whole preamble is judged");
  bool error = false, error_in_pieces = false;
  const auto whole = frames_of(bytes, bytes.size() + 1, &error);
  const auto pieces = frames_of(bytes, piece, &error_in_pieces);
  xce::fuzz::require(whole == pieces && error == error_in_pieces, "pieces make no difference");
  return 0;
}
