#include "controller/state/reservations.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/state/queues.h"
#include "controller/state/tables.h"
#include "xce/errnox.h"

namespace xce::state {
namespace {

constexpr size_t kMaxCommentBytes = 1024;
constexpr size_t kMaxHosts = 10000;
// The scheduler's clock may be this much ahead: what it planned to end in time is believed to.
constexpr int64_t kSlackMs = 10'000;

// Whether it is for jobs of this user or of this queue.
bool is_for(const Reservation& reservation, const std::string& user, const std::string& queue) {
  return is_one_of(reservation.users, user) || is_one_of(reservation.queues, queue);
}

// Whether what lasts from from_ms until until_ms (0: for ever) does so while it is in force.
bool overlaps(const Reservation& reservation, int64_t from_ms, int64_t until_ms) {
  return from_ms < reservation.end_ms && (until_ms == 0 || until_ms > reservation.start_ms);
}

// The first reservation that keeps one of these hosts at the same time, or null.
const Reservation* clash(const Tables& tables, const Reservation& wanted) {
  for (const auto& [name, other] : tables.reservations) {
    if (!overlaps(other, wanted.start_ms, wanted.end_ms)) continue;
    for (const std::string& host : other.hosts)
      if (is_one_of(wanted.hosts, host)) return &other;
  }
  return nullptr;
}

Result check_hosts(const Tables& tables, const Reservation& wanted) {
  if (wanted.hosts.empty() || wanted.hosts.size() > kMaxHosts)
    return refuse(E_XCE_INVALID, absl::StrCat("a reservation keeps 1 to ", kMaxHosts, " hosts"));
  for (const std::string& name : wanted.hosts) {
    const Host* host = tables.hosts.find(name);
    if (!host)
      return refuse(E_XCE_NOENT, absl::StrCat("there is no host '", name,
                                              "': list the hosts and name some of them"));
    if (wanted.cpus > host->attrs.cpus)
      return refuse(E_XCE_INVALID, absl::StrCat("host '", name, "' has ", host->attrs.cpus,
                                                " cpus, not ", wanted.cpus, ": reserve fewer"));
  }
  return {};
}

Result check(const Turn& turn, const Reservation& wanted) {
  const Tables& tables = turn.tables;
  if (!is_good_name(wanted.name)) {
    return refuse(E_XCE_INVALID,
                  "a reservation's name has 1 to 64 letters, digits, '-', '_' or '.': choose "
                  "another");
  }
  if (tables.reservations.count(wanted.name)) {
    return refuse(E_XCE_INVALID, absl::StrCat("reservation '", wanted.name,
                                              "' exists already: delete it, or choose another "
                                              "name"));
  }
  if (tables.reservations.size() >= kMaxReservations) {
    return refuse(E_XCE_BUSY, absl::StrCat("there are ", kMaxReservations,
                                           " reservations already: delete one first"));
  }
  if (wanted.start_ms < 0 || wanted.end_ms <= wanted.start_ms || wanted.end_ms <= turn.now_ms)
    return refuse(E_XCE_INVALID, "a reservation ends after it starts, and in the future");
  if (wanted.users.empty() && wanted.queues.empty())
    return refuse(E_XCE_INVALID, "a reservation is for somebody: name users, queues or both");
  if (wanted.users.size() > kMaxAllowedNames || wanted.queues.size() > kMaxQueues)
    return refuse(E_XCE_INVALID, absl::StrCat("a reservation names at most ", kMaxAllowedNames,
                                              " users: give them a queue of their own"));
  for (const std::string& queue : wanted.queues) {
    if (!tables.queues.count(queue))
      return refuse(E_XCE_NOENT, absl::StrCat("there is no queue '", queue, "': list the queues"));
  }
  if (Result r = check_hosts(tables, wanted); r.status) return r;
  if (const Reservation* other = clash(tables, wanted)) {
    return refuse(E_XCE_BUSY, absl::StrCat("reservation '", other->name,
                                           "' keeps some of these hosts at that time: choose "
                                           "other hosts or another time"));
  }
  return {};
}

// Cpus of the host that running jobs hold which are not those of the reservation.
uint64_t held_by_others(const Tables& tables, const Reservation& reservation,
                        const std::string& host) {
  uint64_t cpus = 0;
  for (const JobId id : tables.jobs.of_host(host)) {
    const Job* job = tables.jobs.find(id);
    if (!has_hosts(job->state) || job->spec.step ||
        is_for(reservation, job->spec.user, job->spec.queue))
      continue;
    for (const Alloc& alloc : job->allocs)
      if (alloc.host == host) cpus += alloc.cpus;
  }
  return cpus;
}

}  // namespace

Result control_reservation(Turn& turn, const Command& command, const ReservationControl& control) {
  if (!is_privileged(command.who))
    return refuse(E_XCE_PERM, "only an administrator may change reservations: ask root");
  const std::string& name = control.reservation.name;
  auto& reservations = turn.tables.reservations;
  if (control.action == ReservationAction::kRemove) {
    if (reservations.erase(name) == 0) {
      return refuse(E_XCE_NOENT, absl::StrCat("there is no reservation '", name,
                                              "': list the reservations; it may be over"));
    }
    turn.reservations_removed.insert(name);
    return {};
  }
  Reservation wanted = control.reservation;
  if (wanted.start_ms == 0) wanted.start_ms = turn.now_ms;
  std::sort(wanted.hosts.begin(), wanted.hosts.end());
  wanted.hosts.erase(std::unique(wanted.hosts.begin(), wanted.hosts.end()), wanted.hosts.end());
  wanted.comment.resize(std::min(wanted.comment.size(), kMaxCommentBytes));
  if (Result r = check(turn, wanted); r.status) return r;
  turn.touch(reservations[name] = std::move(wanted));
  return {};
}

void end_reservations(Turn& turn) {
  auto& reservations = turn.tables.reservations;
  for (auto it = reservations.begin(); it != reservations.end();) {
    if (it->second.end_ms > turn.now_ms) {
      ++it;
      continue;
    }
    turn.reservations_removed.insert(it->first);
    it = reservations.erase(it);
  }
}

bool reservations_permit(const Tables& tables, const Job& job, const std::vector<Alloc>& allocs) {
  for (const auto& [name, reservation] : tables.reservations) {
    const int64_t limit_ms = int64_t{job.spec.time_limit_s} * 1000;
    const int64_t until_ms =
        limit_ms == 0 ? 0 : tables.now_ms + std::max<int64_t>(limit_ms - kSlackMs, 1);
    if (!overlaps(reservation, tables.now_ms, until_ms)) continue;
    if (is_for(reservation, job.spec.user, job.spec.queue)) continue;
    for (const Alloc& alloc : allocs) {
      if (!is_one_of(reservation.hosts, alloc.host)) continue;
      if (reservation.cpus == 0) return false;
      const Host* host = tables.hosts.find(alloc.host);
      const uint64_t others = held_by_others(tables, reservation, alloc.host);
      if (!host || others + alloc.cpus + reservation.cpus > host->attrs.cpus) return false;
    }
  }
  return true;
}

}  // namespace xce::state
