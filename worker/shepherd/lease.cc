// See lease.h.
#include "worker/shepherd/lease.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include "worker/shepherd/process_tree.h"
#include "worker/shepherd/record.h"

namespace xce::worker {

int64_t boot_ms() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

bool write_lease(const std::string& data_dir, const Lease& lease) {
  Record record;
  record.add("boot_id", boot_id());
  record.add("until_ms", lease.until_ms);
  record.add_unsigned("epoch", lease.epoch);
  const std::string bytes = record.encode();
  const int fd = open((data_dir + "/" + kLeaseFile).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool ok = pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  close(fd);
  return ok;
}

std::optional<Lease> read_lease(const std::string& data_dir) {
  std::vector<Record> records;
  decode_records(read_small_file(data_dir + "/" + kLeaseFile), &records);
  if (records.empty() || records.front().text("boot_id") != boot_id()) return std::nullopt;
  return Lease{records.front().number("until_ms"), records.front().unsigned_number("epoch")};
}

}  // namespace xce::worker
