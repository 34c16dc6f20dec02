// The records in which a worker and its shepherds keep what must not be lost: bytes as they are, or
// a record with a right checksum around any body.
#include "fuzz/fuzz.h"
#include "worker/shepherd/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xce::fuzz::require;
  using xce::worker::Record;
  xce::fuzz::Input input(xce::fuzz::view(data, size));
  std::string bytes;
  if (input.byte() % 2 == 0) {
    bytes = std::string(input.rest());
  } else {
    // A frame of its own: magic and layout as encode() has them.
    const std::string empty = Record().encode();
    const std::string_view body = input.rest();
    const uint32_t length = static_cast<uint32_t>(body.size());
    const uint32_t crc = xce::worker::crc32c(body);
    bytes = empty.substr(0, 4);
    bytes.append(reinterpret_cast<const char*>(&length), 4);
    bytes.append(reinterpret_cast<const char*>(&crc), 4);
    bytes.append(body);
  }
  std::vector<Record> records;
  const size_t read = xce::worker::decode_records(bytes, &records);
  require(read <= bytes.size(), "no more is read than there is");
  std::string again;
  for (const Record& record : records) {
    (void)record.text("a");
    (void)record.number("a");
    (void)record.unsigned_number("a");
    (void)record.list("a");
    again += record.encode();
  }
  std::vector<Record> second;
  require(xce::worker::decode_records(again, &second) == again.size() &&
              second.size() == records.size(),
          "what was read can be written");
  return 0;
}
