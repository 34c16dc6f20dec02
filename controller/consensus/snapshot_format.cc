#include "controller/consensus/snapshot_format.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "libxce/base/crc32c.h"

namespace xce::consensus {
namespace {

constexpr uint32_t kMagic = 0x50414e53;  // "SNAP"
constexpr size_t kMaxConf = size_t{64} << 10;

struct RawChunk {
  uint32_t magic;
  uint8_t kind;
  uint8_t reserved[3];
  uint32_t length;
  uint32_t crc;  // of this struct up to here and the bytes, seeded with the chunk's before
};
static_assert(sizeof(RawChunk) == kSnapshotChunkHeader);

struct RawMeta {
  uint32_t version;
  uint32_t conf_length;
  uint64_t index;
  uint64_t term;
  uint64_t conf_index;
  uint64_t cluster;
};

uint32_t crc_of(const RawChunk& chunk, std::string_view bytes, uint32_t chain) {
  const std::string_view head(reinterpret_cast<const char*>(&chunk), offsetof(RawChunk, crc));
  return crc32c(crc32c(chain, head), bytes);
}

}  // namespace

void append_chunk(ChunkKind kind, std::string_view bytes, uint32_t* chain, std::string* out) {
  RawChunk chunk{};
  chunk.magic = kMagic;
  chunk.kind = static_cast<uint8_t>(kind);
  chunk.length = static_cast<uint32_t>(bytes.size());
  chunk.crc = crc_of(chunk, bytes, *chain);
  *chain = chunk.crc;
  out->append(reinterpret_cast<const char*>(&chunk), sizeof chunk);
  out->append(bytes.data(), bytes.size());
}

absl::StatusOr<ChunkHeader> read_chunk_header(std::string_view bytes) {
  RawChunk chunk;
  if (bytes.size() < sizeof chunk) return absl::InvalidArgumentError("it ends inside a chunk");
  std::memcpy(&chunk, bytes.data(), sizeof chunk);
  const bool clean = chunk.reserved[0] == 0 && chunk.reserved[1] == 0 && chunk.reserved[2] == 0;
  if (chunk.magic != kMagic || !clean || chunk.kind < 1 || chunk.kind > 3 ||
      chunk.length > kSnapshotChunk)
    return absl::InvalidArgumentError("a chunk's header cannot be read");
  return ChunkHeader{static_cast<ChunkKind>(chunk.kind), chunk.length, chunk.crc};
}

bool chunk_holds(const ChunkHeader& header, std::string_view bytes, uint32_t* chain) {
  RawChunk chunk{};
  chunk.magic = kMagic;
  chunk.kind = static_cast<uint8_t>(header.kind);
  chunk.length = header.length;
  const bool holds = bytes.size() == header.length && crc_of(chunk, bytes, *chain) == header.crc;
  *chain = header.crc;
  return holds;
}

std::string encode_snapshot_meta(const SnapshotMeta& meta) {
  RawMeta raw{};
  raw.version = kSnapshotVersion;
  raw.conf_length = static_cast<uint32_t>(meta.conf.size());
  raw.index = meta.index;
  raw.term = meta.term;
  raw.conf_index = meta.conf_index;
  raw.cluster = meta.cluster;
  return std::string(reinterpret_cast<const char*>(&raw), sizeof raw) + meta.conf;
}

absl::StatusOr<SnapshotMeta> decode_snapshot_meta(std::string_view bytes) {
  RawMeta raw;
  if (bytes.size() < sizeof raw) return absl::InvalidArgumentError("its header is too short");
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.version > kSnapshotVersion)
    return absl::FailedPreconditionError(
        absl::StrCat("it was written by a newer version of XCE (snapshot format ", raw.version,
                     "; this one knows ", kSnapshotVersion, "). Start the newer version"));
  if (raw.conf_length > kMaxConf || bytes.size() != sizeof raw + raw.conf_length ||
      raw.index == 0 || raw.term == 0)
    return absl::InvalidArgumentError("its header makes no sense");
  SnapshotMeta meta;
  meta.index = raw.index;
  meta.term = raw.term;
  meta.conf_index = raw.conf_index;
  meta.cluster = raw.cluster;
  meta.conf = std::string(bytes.substr(sizeof raw));
  return meta;
}

}  // namespace xce::consensus
