// See record.h.
#include "worker/shepherd/record.h"

#include <array>
#include <cstdlib>

namespace xce::worker {
namespace {

constexpr uint32_t kMagic = 0x31524358;  // "XCR1"
constexpr size_t kHeader = 12;
constexpr size_t kMaxBody = 16 * 1024 * 1024;

std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? (c >> 1) ^ 0x82F63B78u : c >> 1;
    table[i] = c;
  }
  return table;
}

void put32(uint32_t value, std::string* out) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t get32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

// Takes a length-prefixed string off the front; false when it does not fit.
bool take(std::string_view* from, std::string_view* out) {
  if (from->size() < 4) return false;
  const uint32_t length = get32(*from);
  if (length > from->size() - 4) return false;
  *out = from->substr(4, length);
  from->remove_prefix(4 + length);
  return true;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = make_table();
  uint32_t crc = ~0u;
  for (char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string_view Record::text(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (key == name) return value;
  }
  return {};
}

int64_t Record::number(std::string_view name) const {
  return std::strtoll(std::string(text(name)).c_str(), nullptr, 10);
}

uint64_t Record::unsigned_number(std::string_view name) const {
  return std::strtoull(std::string(text(name)).c_str(), nullptr, 10);
}

std::vector<std::string> Record::list(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : fields_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::string Record::encode() const {
  std::string body;
  for (const auto& [name, value] : fields_) {
    put32(static_cast<uint32_t>(name.size()), &body);
    body += name;
    put32(static_cast<uint32_t>(value.size()), &body);
    body += value;
  }
  std::string out;
  out.reserve(kHeader + body.size());
  put32(kMagic, &out);
  put32(static_cast<uint32_t>(body.size()), &out);
  put32(crc32c(body), &out);
  return out + body;
}

size_t decode_records(std::string_view bytes, std::vector<Record>* out) {
  size_t taken = 0;
  while (bytes.size() - taken >= kHeader) {
    const std::string_view rest = bytes.substr(taken);
    const uint32_t length = get32(rest.substr(4));
    if (get32(rest) != kMagic || length > kMaxBody || length > rest.size() - kHeader) break;
    std::string_view body = rest.substr(kHeader, length);
    if (crc32c(body) != get32(rest.substr(8))) break;
    Record record;
    std::string_view name, value;
    while (!body.empty()) {
      if (!take(&body, &name) || !take(&body, &value)) return taken;
      record.add(name, value);
    }
    out->push_back(std::move(record));
    taken += kHeader + length;
  }
  return taken;
}

}  // namespace xce::worker
