// A snapshot file: bytes as they are, or chunks with right checksums around any content.
#include <algorithm>
#include <cerrno>

#include "controller/consensus/snapshot_file.h"
#include "controller/consensus/snapshot_format.h"
#include "fuzz/fuzz.h"

namespace {

using namespace xce::consensus;  // NOLINT: a test of two headers

// One file, read only.
class OneFile final : public FileSystem {
 public:
  explicit OneFile(std::string bytes) : bytes_(std::move(bytes)) {}
  int open(const std::string&, int, int) override { return 1; }
  int64_t pwrite(int, const void*, size_t, uint64_t) override { return -EROFS; }
  int64_t pread(int, void* to, size_t n, uint64_t offset) override {
    if (offset >= bytes_.size()) return 0;
    n = std::min<size_t>(n, bytes_.size() - offset);
    std::memcpy(to, bytes_.data() + offset, n);
    return static_cast<int64_t>(n);
  }
  int64_t size(int) override { return static_cast<int64_t>(bytes_.size()); }
  int fdatasync(int) override { return 0; }
  int fsync(int) override { return 0; }
  int close(int) override { return 0; }
  int rename(const std::string&, const std::string&) override { return -EROFS; }
  int unlink(const std::string&) override { return -EROFS; }
  int mkdir(const std::string&, int) override { return -EROFS; }
  int lock(int) override { return 0; }
  int list(const std::string&, std::vector<std::string>*) override { return 0; }

 private:
  const std::string bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  xce::fuzz::Input input(xce::fuzz::view(data, size));
  std::string bytes;
  if (input.byte() % 2 == 0) {
    bytes = std::string(input.rest());
  } else {
    uint32_t chain = 0;
    while (!input.empty()) {
      const auto kind = static_cast<ChunkKind>(input.byte() % 4);
      append_chunk(kind, input.take(input.number()), &chain, &bytes);
    }
  }
  OneFile file(bytes);
  auto reader = SnapshotReader::open(&file, "5.snap");
  if (!reader.ok()) {
    xce::fuzz::require(std::string(reader.status().message()).find("5.snap") != std::string::npos,
                       "a refusal names the file");
    return 0;
  }
  xce::fuzz::require((*reader)->meta().index != 0, "a snapshot stands for something");
  char piece[1000];
  size_t total = 0, n = 0;
  while ((n = (*reader)->read(piece, sizeof piece)) > 0) total += n;
  xce::fuzz::require(total <= bytes.size(), "no more comes out than is in it");
  (void)(*reader)->finish();
  // What the header says can be said again.
  const auto meta = decode_snapshot_meta(encode_snapshot_meta((*reader)->meta()));
  xce::fuzz::require(meta.ok() && meta->index == (*reader)->meta().index, "a header is kept");
  return 0;
}
