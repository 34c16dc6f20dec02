// A log's segments: bytes as they are, or, since no fuzzer guesses checksums, records with right
// checksums around any content, with one byte of the file changed at will.
#include <optional>

#include "controller/consensus/log_format.h"
#include "fuzz/fuzz.h"

namespace {

using namespace xce::consensus;  // NOLINT: a test of one header

constexpr uint64_t kSalt = 0x5a17;
constexpr size_t kSegment = 16 * 1024;

void replay(const std::vector<std::string>& segments, std::optional<uint64_t> mark) {
  LogReplay replay(kSalt, "the way out");
  uint64_t number = 1;
  absl::Status status;
  for (const std::string& segment : segments) {
    if (!status.ok()) break;
    status = replay.add(number++, "segment", segment);
  }
  if (status.ok()) status = replay.finish(mark);
  if (!status.ok()) {
    const std::string_view words(status.message().data(), status.message().size());
    xce::fuzz::require(words.find("way out") != std::string_view::npos ||
                           words.find("newer") != std::string_view::npos,
                       "a refusal names the way out: " + std::string(words));
    return;
  }
  const LogContents& contents = replay.contents();
  xce::fuzz::require(contents.entries.empty() || contents.first_index != 0,
                     "entries have an index");
  for (const LogEntry& entry : contents.entries)
    xce::fuzz::require(entry.data.size() % 8 == 0, "an entry is a multiple of eight bytes");
  xce::fuzz::require(replay.tail().offset % kSector == 0, "the tail is at a sector");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xce::fuzz::Input input(xce::fuzz::view(data, size));
  const uint8_t mode = input.byte();
  const std::optional<uint64_t> mark =
      (mode & 2) != 0 ? std::optional<uint64_t>(input.byte()) : std::nullopt;
  if ((mode & 1) == 0) {
    const std::string_view all = input.rest();
    (void)read_salt(all.substr(0, kSector));
    (void)decode_mark(kSalt, all.substr(0, kMarkSize));
    replay({std::string(all.substr(0, all.size() / 2)), std::string(all.substr(all.size() / 2))},
           mark);
    return 0;
  }
  const uint16_t change_at = input.number();
  const uint8_t change = input.byte();
  LogTail tail;
  std::vector<std::string> segments;
  while (!input.empty() && segments.size() < 8) {
    const std::string_view items = input.take(input.number() % 2048);
    const size_t needed = record_size(items.size());
    if (segments.empty() || segments.back().size() + needed > kSegment) {
      if (!segments.empty()) segments.back().resize(kSegment);
      segments.push_back(encode_segment_header(kSalt, segments.size() + 1, tail));
    }
    segments.back() += encode_record(kSalt, items, &tail);
  }
  if (segments.empty()) return 0;
  segments.back().resize(kSegment);
  std::string& changed = segments[change_at % segments.size()];
  changed[change_at % changed.size()] =
      static_cast<char>(changed[change_at % changed.size()] ^ change);
  replay(segments, mark);
  return 0;
}
