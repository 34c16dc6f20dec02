// Records: how the worker and its shepherds write what must survive to disk. Standard library only:
// the shepherd stays small.
//
// A record is a list of (name, bytes) fields in a frame {magic, length, CRC32C of the body}. Files
// of records are append-only; a reader takes whole records from the start and stops at the first
// that is not whole: a torn tail, or the zeros that a preallocated file ends with. Computes only;
// the callers read and write.
#ifndef XCE_WORKER_SHEPHERD_RECORD_H_
#define XCE_WORKER_SHEPHERD_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xce::worker {

// CRC32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);

// One record. Fields keep their order and may repeat (lists).
class Record {
 public:
  void add(std::string_view name, std::string_view value) { fields_.emplace_back(name, value); }
  void add(std::string_view name, int64_t value) {
    add(name, std::string_view(std::to_string(value)));
  }
  void add_unsigned(std::string_view name, uint64_t value) {
    add(name, std::string_view(std::to_string(value)));
  }

  // The first field of that name, or "" / 0.
  std::string_view text(std::string_view name) const;
  int64_t number(std::string_view name) const;
  uint64_t unsigned_number(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;

  // The record in its frame, to be appended to a file.
  std::string encode() const;

 private:
  friend size_t decode_records(std::string_view bytes, std::vector<Record>* out);
  std::vector<std::pair<std::string, std::string>> fields_;
};

// Appends the whole records at the start of `bytes` to `out` and returns how many bytes they take;
// what follows is torn, damaged or zeros.
size_t decode_records(std::string_view bytes, std::vector<Record>* out);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_RECORD_H_
