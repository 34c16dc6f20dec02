// The lease of jobs that ask to be requeued when their host is lost: such a job may run only while
// a primary has been heard from lately, so that once its lease has run out it can be started
// elsewhere without running twice. The worker renews the lease; each job's shepherd enforces it, so
// that a worker that is dead, stopped or cut off fences too.
//
// A lease that ran out is over for good: the next one has another epoch, and a job belongs to the
// epoch that it was launched in. So a job that nobody ended in time (the machine slept), or a
// dispatch that lay about meanwhile, does not go on under the new one.
//
// Times are of CLOCK_BOOTTIME, which goes on while the machine sleeps; the file names its boot, as
// that clock starts anew with each. Standard library only. I/O; thread safe: functions of their
// arguments.
#ifndef XCE_WORKER_SHEPHERD_LEASE_H_
#define XCE_WORKER_SHEPHERD_LEASE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace xce::worker {

inline constexpr char kLeaseFile[] = "lease";  // in the data directory

struct Lease {
  int64_t until_ms = 0;  // of boot_ms()
  uint64_t epoch = 0;    // 0: there never was one
};

int64_t boot_ms();  // CLOCK_BOOTTIME

// Writes it in place and without a sync: it needs no space on a full disk, and after a power cut no
// job is left. False: it could not be written (errno says why).
bool write_lease(const std::string& data_dir, const Lease& lease);

// nullopt: there is none, it is of another boot, or is being written now.
std::optional<Lease> read_lease(const std::string& data_dir);

}  // namespace xce::worker

#endif  // XCE_WORKER_SHEPHERD_LEASE_H_
