// Frames: how bytes on a connection are cut into messages. PURE: bytes in, frames out; no socket,
// no clock.
//
// A connection starts with an 8-byte preamble that tells clients ("XCE1C") from controllers
// ("XCE1P"), then carries frames: a 16-byte header {magic, version, flags, reserved, payload
// length, reserved} in little endian and one Cap'n Proto message in its flat form. The length is
// checked against the limit before memory is taken.
#ifndef XCE_LIBXCE_NET_FRAME_H_
#define XCE_LIBXCE_NET_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace xce::net {

inline constexpr size_t kPreambleSize = 8;
inline constexpr char kClientPreamble[kPreambleSize + 1] = "XCE1C\0\0\0";
inline constexpr char kPeerPreamble[kPreambleSize + 1] = "XCE1P\0\0\0";

inline constexpr uint32_t kFrameMagic = 0x46454358;  // "XCEF"
inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderSize = 16;
inline constexpr size_t kMaxFrameBeforeHello =
    16 * 1024;  // bytes of payload, until the peer has said hello
inline constexpr size_t kMaxFrame = 4 * 1024 * 1024;  // bytes of payload, afterwards

enum class Preamble { kIncomplete, kClient, kPeer, kGarbage };

// Tells what the first bytes of a connection announce; kGarbage as soon as they cannot become a
// preamble.
Preamble classify_preamble(std::string_view first_bytes);

// Appends a frame with `payload` to `out`. The payload's size must be a multiple of 8 and at most
// kMaxFrame (checked).
void append_frame(std::string_view payload, std::string* out);

// Cuts a byte stream into frames. Not thread safe. After an error the connection must be closed.
class FrameDecoder {
 public:
  explicit FrameDecoder(size_t max_payload = kMaxFrameBeforeHello) : max_payload_(max_payload) {}

  void set_max_payload(size_t bytes) { max_payload_ = bytes; }

  // Takes in received bytes.
  void feed(std::string_view bytes);

  // The next whole frame's payload, 8-byte aligned and a multiple of 8 bytes, or nullopt when more
  // bytes are needed. InvalidArgument: what came is no frame of this protocol, or is larger than
  // the limit (the message says which).
  absl::StatusOr<std::optional<std::vector<uint64_t>>> next();

  // Bytes held that are not yet a whole frame: > 0 means that a frame is under way (for a read
  // deadline).
  size_t pending() const { return buffer_.size() - offset_; }

 private:
  size_t max_payload_;
  std::string buffer_;
  size_t offset_ = 0;  // bytes of buffer_ already handed out
};

}  // namespace xce::net

#endif  // XCE_LIBXCE_NET_FRAME_H_
