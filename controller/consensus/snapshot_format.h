// A snapshot file as bytes. PURE: no file, no clock.
//
// A row of chunks, each with its length and a CRC32C that continues the one of the chunk before it,
// so that none can be missing or out of place: first the header (what the snapshot stands for),
// then the state's bytes, last the trailer.
#ifndef XCE_CONTROLLER_CONSENSUS_SNAPSHOT_FORMAT_H_
#define XCE_CONTROLLER_CONSENSUS_SNAPSHOT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xce::consensus {

inline constexpr uint32_t kSnapshotVersion = 1;
inline constexpr size_t kSnapshotChunk = size_t{256} << 10;  // of data, at most
inline constexpr size_t kSnapshotChunkHeader = 16;

// What a snapshot stands for: everything up to `index`.
struct SnapshotMeta {
  uint64_t index = 0;  // 0: no snapshot
  uint64_t term = 0;   // of the entry at index
  uint64_t conf_index = 0;
  std::string conf;  // the configuration as of index
  uint64_t cluster = 0;
};

enum class ChunkKind : uint8_t { kHeader = 1, kData = 2, kTrailer = 3 };

struct ChunkHeader {
  ChunkKind kind = ChunkKind::kData;
  uint32_t length = 0;  // of what follows
  uint32_t crc = 0;
};

// Appends a chunk to `out`. *chain: the CRC of the chunk before, 0 at first; becomes this one's.
void append_chunk(ChunkKind kind, std::string_view bytes, uint32_t* chain, std::string* out);
// InvalidArgument: these are no chunk's first kSnapshotChunkHeader bytes.
absl::StatusOr<ChunkHeader> read_chunk_header(std::string_view bytes);
// Whether `bytes` is what the header was written for; moves *chain on.
bool chunk_holds(const ChunkHeader& header, std::string_view bytes, uint32_t* chain);

std::string encode_snapshot_meta(const SnapshotMeta& meta);
// InvalidArgument: it makes no sense; FailedPrecondition: a newer version wrote it.
absl::StatusOr<SnapshotMeta> decode_snapshot_meta(std::string_view bytes);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_SNAPSHOT_FORMAT_H_
