#include "libxce/net/frame.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace xce::net {
namespace {

// Host order is little endian on every machine that XCE builds for; the static assertion keeps it
// so.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are written in host order");

struct Header {
  uint32_t magic;
  uint8_t version;
  uint8_t flags;
  uint16_t reserved;
  uint32_t length;
  uint32_t reserved2;
};
static_assert(sizeof(Header) == kFrameHeaderSize);

}  // namespace

Preamble classify_preamble(std::string_view first_bytes) {
  const std::string_view begin = first_bytes.substr(0, kPreambleSize);
  const size_t n = begin.size();
  const bool client = begin == std::string_view(kClientPreamble, n);
  const bool peer = begin == std::string_view(kPeerPreamble, n);
  if (!client && !peer) return Preamble::kGarbage;
  if (n < kPreambleSize) return Preamble::kIncomplete;
  return client ? Preamble::kClient : Preamble::kPeer;
}

void append_frame(std::string_view payload, std::string* out) {
  if (payload.size() % 8 != 0 || payload.size() > kMaxFrame) std::abort();  // a caller's bug
  const Header header = {
      kFrameMagic, kFrameVersion, 0, 0, static_cast<uint32_t>(payload.size()), 0};
  out->reserve(out->size() + sizeof header + payload.size());
  out->append(reinterpret_cast<const char*>(&header), sizeof header);
  out->append(payload.data(), payload.size());
}

void FrameDecoder::feed(std::string_view bytes) {
  if (offset_ > 0 && (offset_ == buffer_.size() || offset_ >= 64 * 1024)) {
    buffer_.erase(0, offset_);
    offset_ = 0;
  }
  buffer_.append(bytes.data(), bytes.size());
}

absl::StatusOr<std::optional<std::vector<uint64_t>>> FrameDecoder::next() {
  if (pending() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, buffer_.data() + offset_, sizeof header);
  if (header.magic != kFrameMagic)
    return absl::InvalidArgumentError("not an XCE frame: is this an XCE client or daemon?");
  if (header.version != kFrameVersion)
    return absl::InvalidArgumentError(absl::StrCat("frame version ", int{header.version},
                                                   " is not supported; this side speaks version ",
                                                   int{kFrameVersion}));
  if (header.length == 0 || header.length % 8 != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("frame length ", header.length, " is not a multiple of 8"));
  if (header.length > max_payload_)
    return absl::InvalidArgumentError(absl::StrCat(
        "request of ", header.length, " bytes is over the limit of ", max_payload_, " bytes"));
  if (pending() < sizeof header + header.length) return std::nullopt;
  std::vector<uint64_t> words(header.length / 8);
  if (header.length > 0)
    std::memcpy(words.data(), buffer_.data() + offset_ + sizeof header, header.length);
  offset_ += sizeof header + header.length;
  return words;
}

}  // namespace xce::net
