#include "controller/consensus/log_format.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libxce/base/crc32c.h"

namespace xce::consensus {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the log is written in host order");

constexpr uint64_t kSegmentMagic = 0x31474f4c45435821;  // "!XCELOG1"
constexpr uint32_t kRecordMagic = 0x43455258;           // "XREC"
constexpr uint64_t kMarkMagic = 0x314b52414d454358;     // "XCEMARK1"

enum ItemKind : uint32_t {
  kTermVote = 1,
  kEntries = 2,
  kTruncate = 3,
  kInstance = 4,
  kReset = 5,
  kTaggedInstance = 6
};

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_crc;  // of this struct with header_crc = 0
  uint64_t number;
  uint64_t salt;
  uint64_t first_seq;
  uint32_t chain;
  uint32_t reserved;
};
static_assert(sizeof(SegmentHeader) <= kSector);

struct RecordHeader {
  uint32_t magic;
  uint8_t version;
  uint8_t type;  // 1: a batch of items
  uint16_t reserved;
  uint32_t length;  // bytes of items, without padding
  uint32_t reserved1;
  uint64_t seq;
  uint64_t reserved2[3];
  uint32_t chain;     // header_crc of the record before this one
  uint32_t body_crc;  // of the items, seeded with chain
  uint32_t reserved3;
  uint32_t header_crc;  // of this struct up to here, seeded with the salt
};
static_assert(sizeof(RecordHeader) == kRecordHeaderSize);

struct Mark {
  uint64_t magic;
  uint64_t seq;
  uint64_t reserved;
  uint32_t reserved2;
  uint32_t crc;
};
static_assert(sizeof(Mark) == kMarkSize);

template <class T>
std::string_view as_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
void append_raw(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

uint32_t seed_of(uint64_t salt) { return crc32c(0, as_bytes(salt)); }

uint32_t crc_of(const RecordHeader& header, uint64_t salt) {
  return crc32c(seed_of(salt), as_bytes(header).substr(0, offsetof(RecordHeader, header_crc)));
}

std::optional<SegmentHeader> read_segment_header(std::string_view bytes) {
  SegmentHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kSegmentMagic) return std::nullopt;
  SegmentHeader copy = header;
  copy.header_crc = 0;
  if (crc32c(seed_of(header.salt), as_bytes(copy)) != header.header_crc) return std::nullopt;
  return header;
}

// The header of a record at `offset`, if its own checksum holds.
std::optional<RecordHeader> read_record_header(std::string_view bytes, size_t offset,
                                               uint64_t salt) {
  RecordHeader header;
  if (offset > bytes.size() || bytes.size() - offset < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data() + offset, sizeof header);
  if (header.magic != kRecordMagic || crc_of(header, salt) != header.header_crc)
    return std::nullopt;
  return header;
}

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// Takes values off the front of a byte string; a read past the end yields zero and sets failed().
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value{};
    const std::string_view raw = take_bytes(sizeof value);
    if (raw.size() == sizeof value) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view take_bytes(size_t n) {
    if (n > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return out;
  }
  bool failed() const { return failed_; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace

void append_term_vote_item(uint64_t term, uint64_t vote, std::string* out) {
  append_raw(uint32_t{kTermVote}, out);
  append_raw(uint32_t{0}, out);
  append_raw(term, out);
  append_raw(vote, out);
}

void append_truncate_item(uint64_t from_index, std::string* out) {
  append_raw(uint32_t{kTruncate}, out);
  append_raw(uint32_t{0}, out);
  append_raw(from_index, out);
}

void append_reset_item(uint64_t index, std::string* out) {
  append_raw(uint32_t{kReset}, out);
  append_raw(uint32_t{0}, out);
  append_raw(index, out);
}

void append_instance_item(uint64_t node, const KnownInstance& instance, std::string* out) {
  append_raw(uint32_t{instance.tag == 0 ? kInstance : kTaggedInstance}, out);
  append_raw(uint32_t{0}, out);
  append_raw(node, out);
  append_raw(instance.id.hi, out);
  append_raw(instance.id.lo, out);
  if (instance.tag != 0) append_raw(instance.tag, out);
}

void append_entries_item(uint64_t first_index, uint32_t count, std::string* out) {
  append_raw(uint32_t{kEntries}, out);
  append_raw(count, out);
  append_raw(first_index, out);
}

void append_entry(uint64_t term, uint16_t type, std::string_view data, std::string* out) {
  append_raw(term, out);
  append_raw(uint32_t{type}, out);
  append_raw(static_cast<uint32_t>(data.size()), out);
  out->append(data.data(), data.size());
}

size_t entry_item_size(size_t data_size) { return 16 + data_size; }

size_t record_size(size_t payload_size) {
  return (kRecordHeaderSize + payload_size + kSector - 1) / kSector * kSector;
}

std::string encode_record(uint64_t salt, std::string_view items, LogTail* tail) {
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.version = kLogVersion;
  header.type = 1;
  header.length = static_cast<uint32_t>(items.size());
  header.seq = tail->next_seq;
  header.chain = tail->chain;
  header.body_crc = crc32c(header.chain, items);
  header.header_crc = crc_of(header, salt);
  std::string out;
  out.reserve(record_size(items.size()));
  append_raw(header, &out);
  out.append(items.data(), items.size());
  out.resize(record_size(items.size()), '\0');
  tail->next_seq++;
  tail->chain = header.header_crc;
  return out;
}

std::string encode_segment_header(uint64_t salt, uint64_t number, const LogTail& tail) {
  SegmentHeader header{};
  header.magic = kSegmentMagic;
  header.version = kLogVersion;
  header.number = number;
  header.salt = salt;
  header.first_seq = tail.next_seq;
  header.chain = tail.chain;
  header.header_crc = crc32c(seed_of(salt), as_bytes(header));
  std::string out(as_bytes(header));
  out.resize(kSector, '\0');
  return out;
}

std::optional<uint64_t> read_salt(std::string_view first_sector) {
  const auto header = read_segment_header(first_sector);
  if (!header) return std::nullopt;
  return header->salt;
}

std::string encode_mark(uint64_t salt, uint64_t seq) {
  Mark mark{};
  mark.magic = kMarkMagic;
  mark.seq = seq;
  mark.crc = crc32c(seed_of(salt), as_bytes(mark).substr(0, offsetof(Mark, crc)));
  return std::string(as_bytes(mark));
}

std::optional<uint64_t> decode_mark(uint64_t salt, std::string_view bytes) {
  Mark mark;
  if (bytes.size() < sizeof mark) return std::nullopt;
  std::memcpy(&mark, bytes.data(), sizeof mark);
  if (mark.magic != kMarkMagic) return std::nullopt;
  if (crc32c(seed_of(salt), as_bytes(mark).substr(0, offsetof(Mark, crc))) != mark.crc)
    return std::nullopt;
  return mark.seq;
}

absl::Status LogReplay::damage(std::string_view what) const {
  return absl::DataLossError(absl::StrCat(end_file_, " is damaged at offset ", end_offset_,
                                          " (record ", tail_.next_seq, "): ", std::string(what),
                                          ". ", way_out_));
}

bool LogReplay::later_record_in(std::string_view bytes, size_t from) const {
  for (size_t at = from; at < bytes.size(); at += kSector) {
    const auto header = read_record_header(bytes, at, salt_);
    if (header && header->seq > tail_.next_seq) return true;
  }
  return false;
}

absl::Status LogReplay::add(uint64_t number, std::string_view file, std::string_view bytes) {
  const auto header = read_segment_header(bytes.substr(0, std::min(bytes.size(), kSector)));
  if (header && header->version > kLogVersion)
    return absl::FailedPreconditionError(absl::StrCat(
        std::string(file), " was written by a newer version of XCE (log format ", header->version,
        "; this one knows ", kLogVersion, "). Start the newer version."));
  const bool ours = header && header->salt == salt_ && header->number == number;
  if (!ours) {
    if (!header && all_zero(bytes)) return absl::OkStatus();  // made in advance, not yet used
    if (!ended_ || !torn_) {
      // The header goes to disk in one write with the first record: torn together, or damaged.
      end_file_ = std::string(file);
      end_offset_ = 0;
      if (header) return damage("the segment belongs to another log or has another number");
      if (later_record_in(bytes, kSector))
        return damage("the segment's header cannot be read, but later records can");
      ended_ = torn_ = true;
      torn_segment_ = number;
      return absl::OkStatus();
    }
    return damage("it cannot be read, but a later segment has been written");
  }
  if (ended_ && torn_) return damage("it cannot be read, but a later segment has been written");
  if (tail_.segment != 0 && (header->first_seq != tail_.next_seq || header->chain != tail_.chain))
    return damage(absl::StrCat("records are missing: the next segment starts with record ",
                               header->first_seq));
  if (tail_.segment == 0) {
    tail_.next_seq = header->first_seq;
    tail_.chain = header->chain;
    if (header->first_seq == 1) contents_.first_index = 1;
  }
  tail_.segment = number;
  highest_index_[number] = 0;
  tail_.offset = kSector;
  ended_ = false;
  return read_records(file, bytes);
}

absl::Status LogReplay::read_records(std::string_view file, std::string_view bytes) {
  while (tail_.offset + kRecordHeaderSize <= bytes.size()) {
    const auto header = read_record_header(bytes, tail_.offset, salt_);
    bool good = header && header->seq == tail_.next_seq && header->chain == tail_.chain &&
                header->length <= bytes.size() - tail_.offset - kRecordHeaderSize;
    std::string_view items;
    if (good) {
      items = bytes.substr(tail_.offset + kRecordHeaderSize, header->length);
      good = crc32c(header->chain, items) == header->body_crc;
    }
    if (!good) {
      end_file_ = std::string(file);
      end_offset_ = tail_.offset;
      // The header of a record may be the very part that is bad: look for any record that was
      // written later.
      if (later_record_in(bytes, tail_.offset))
        return damage(
            "it cannot be read, but later records can: this is no write cut short by a crash");
      ended_ = true;
      torn_ = !all_zero(bytes.substr(tail_.offset));
      torn_segment_ = tail_.segment;
      return absl::OkStatus();
    }
    if (header->version > kLogVersion)
      return absl::FailedPreconditionError(absl::StrCat(
          std::string(file), " was written by a newer version of XCE. Start the newer version."));
    absl::Status status = apply_items(file, tail_.offset, items);
    if (!status.ok()) return status;
    tail_.offset += record_size(header->length);
    tail_.next_seq++;
    tail_.chain = header->header_crc;
  }
  end_file_ = std::string(file);
  end_offset_ = tail_.offset;
  ended_ = true;
  return absl::OkStatus();
}

absl::Status LogReplay::apply_items(std::string_view file, size_t offset, std::string_view items) {
  Cursor in(items);
  const char* problem = nullptr;
  while (problem == nullptr && !in.empty()) {
    const auto kind = in.take<uint32_t>();
    const auto count = in.take<uint32_t>();
    switch (kind) {
      case kTermVote: {
        const auto term = in.take<uint64_t>();
        const auto vote = in.take<uint64_t>();
        if (term < contents_.term) problem = "the term goes back";
        contents_.term = term;
        contents_.vote = vote;
        break;
      }
      case kTruncate: {
        const auto from = in.take<uint64_t>();
        if (contents_.first_index == 0) break;  // of entries that a removed segment held
        if (from == 0 || from > contents_.first_index + contents_.entries.size()) {
          problem = "a truncation beyond the log's end";
        } else if (from < contents_.first_index) {
          contents_.entries.clear();
          contents_.first_index = 0;
        } else {
          contents_.entries.resize(from - contents_.first_index);
        }
        break;
      }
      case kReset:
        contents_.entries.clear();
        contents_.first_index = in.take<uint64_t>() + 1;
        break;
      case kInstance:
      case kTaggedInstance: {
        const auto node = in.take<uint64_t>();
        KnownInstance instance;
        instance.id.hi = in.take<uint64_t>();
        instance.id.lo = in.take<uint64_t>();
        if (kind == kTaggedInstance) instance.tag = in.take<uint64_t>();
        contents_.instances[node] = instance;
        break;
      }
      case kEntries: {
        const auto first = in.take<uint64_t>();
        if (contents_.first_index == 0) contents_.first_index = first;
        if (first == 0 || first != contents_.first_index + contents_.entries.size())
          problem = "entries do not continue the log";
        highest_index_[tail_.segment] = std::max(highest_index_[tail_.segment], first + count - 1);
        for (uint32_t i = 0; i < count && problem == nullptr && !in.failed(); i++) {
          LogEntry entry;
          entry.term = in.take<uint64_t>();
          entry.type = static_cast<uint16_t>(in.take<uint32_t>());
          const auto length = in.take<uint32_t>();
          entry.data = std::string(in.take_bytes(length));
          if (entry.term == 0 || entry.data.size() % 8 != 0)
            problem = "an entry without a term or of odd length";
          contents_.entries.push_back(std::move(entry));
        }
        break;
      }
      default: problem = "an item of an unknown kind";
    }
    if (in.failed()) problem = "an item is cut short";
  }
  if (problem == nullptr) return absl::OkStatus();
  // The checksum holds, so these bytes are what was written: a bug or a forged file, no bad disk.
  return absl::DataLossError(absl::StrCat(std::string(file), " makes no sense at offset ", offset,
                                          ": ", problem, ". ", way_out_));
}

absl::Status LogReplay::finish(std::optional<uint64_t> mark) {
  if (mark && *mark >= tail_.next_seq)
    return damage(absl::StrCat(
        "it cannot be read, but had been written completely (the mark says up to record ", *mark,
        ")"));
  return absl::OkStatus();
}

}  // namespace xce::consensus
