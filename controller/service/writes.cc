#include "controller/service/writes.h"

#include <memory>
#include <utility>
#include <variant>

#include "libxce/wire/codec.h"

namespace xce::service {
namespace {

constexpr size_t kMaxEntryBytes = 512 * 1024;
constexpr size_t kMaxEntryCommands = 4096;
constexpr size_t kMaxUnderWayBytes =
    64 * 1024 * 1024;  // beyond it the disks do not keep up: callers wait

// A guess at the encoded size, without encoding.
struct SizeGuess {
  static size_t gres(const std::vector<Gres>& from) {
    size_t n = 0;
    for (const Gres& each : from) n += 24 + each.name.size();
    return n;
  }
  size_t operator()(const JobSpec& spec) const {
    size_t n = 512 + spec.name.size() + spec.user.size() + spec.queue.size() +
               spec.work_dir.size() + spec.stdin_path.size() + spec.stdout_path.size() +
               spec.stderr_path.size() + spec.submit_key.size() + spec.comment.size() +
               4 * spec.array.size() + gres(spec.gres) + 16 * spec.dependencies.size();
    if (spec.step) {
      for (const std::string& host : spec.step->hosts) n += host.size() + 16;
    }
    if (!spec.body) return n;
    n += spec.body->script.size();
    for (const std::string& arg : spec.body->args) n += arg.size() + 16;
    for (const std::string& env : spec.body->env) n += env.size() + 16;
    return n;
  }
  size_t operator()(const Dispatches& dispatches) const {
    size_t n = 64;
    for (const Dispatch& item : dispatches.items) {
      n += 48;
      for (const Alloc& alloc : item.allocs) n += 48 + alloc.host.size() + gres(alloc.gres);
    }
    return n;
  }
  size_t operator()(const PendReasons& reasons) const {
    size_t n = 64;
    for (const PendReason& item : reasons.items) n += 40 + item.reason.size();
    return n;
  }
  size_t operator()(const Notify& notify) const {
    size_t n = 64;
    for (const Report& item : notify.items)
      n += 160 + item.message.size() + item.stdout_file.size() + item.stderr_file.size();
    return n;
  }
  size_t operator()(const JobControl& control) const {
    return 64 + 8 * control.ids.size() + (*this)(control.modify);
  }
  size_t operator()(const Join& join) const {
    const HostAttrs& host = join.host;
    return 256 + host.name.size() + host.version.size() + host.address.size() +
           host.boot_id.size() + host.fault.size() + gres(host.gres);
  }
  size_t operator()(const UpdateResvals& update) const { return 64 + gres(update.gres); }
  size_t operator()(const QueueControl& control) const { return 256 + control.queue.name.size(); }
  size_t operator()(const HostControl& control) const {
    return 256 + control.name.size() + control.reason.size();
  }
  size_t operator()(const ReservationControl& control) const {
    const Reservation& what = control.reservation;
    size_t n = 256 + what.comment.size();
    for (const auto* names : {&what.hosts, &what.users, &what.queues})
      for (const std::string& name : *names) n += 16 + name.size();
    return n;
  }
  template <typename Other>
  size_t operator()(const Other&) const {
    return 512;
  }
};

}  // namespace

size_t guess_bytes(const Op& op) { return 128 + std::visit(SizeGuess{}, op); }

Writes::Writes(Replica* replica, Done done, Results results)
    : replica_(replica), done_(std::move(done)), results_(std::move(results)) {}

void Writes::add(Command command, Waiter waiter) {
  const size_t bytes = guess_bytes(command.op);
  added_.push_back({std::move(command), waiter, bytes});
}

void Writes::propose(uint64_t now_ms, int64_t wall_ms) {
  if (added_.empty()) return;
  // What comes too late, or over the bound, is answered now; the rest closes ranks.
  std::vector<Added> rest;
  size_t bytes = under_way_bytes_;
  for (Added& each : added_) {
    Fate fate;
    if (each.waiter.deadline_ms != 0 && now_ms > each.waiter.deadline_ms) {
      fate.kind = Fate::kTooLate;
    } else if (bytes + each.bytes > kMaxUnderWayBytes && each.waiter.conn != 0) {
      fate.kind = Fate::kBusy;
    } else {
      bytes += each.bytes;
      rest.push_back(std::move(each));
      continue;
    }
    done_(each.waiter, fate);
  }
  added_ = std::move(rest);
  for (size_t first = 0; first < added_.size();) {
    size_t entry_bytes = added_[first].bytes;
    size_t last = first + 1;
    while (last < added_.size() && last - first < kMaxEntryCommands &&
           entry_bytes + added_[last].bytes <= kMaxEntryBytes)
      entry_bytes += added_[last++].bytes;
    propose_entry(first, last, wall_ms);
    first = last;
  }
  added_.clear();
}

void Writes::propose_entry(size_t first, size_t last, int64_t wall_ms) {
  Entry entry;
  entry.time_ms = wall_ms;
  commands_.add(static_cast<double>(last - first));
  auto waiters = std::make_shared<std::vector<Waiter>>();
  for (size_t i = first; i < last; ++i) {
    entry.commands.push_back(std::move(added_[i].command));
    waiters->push_back(added_[i].waiter);
  }
  std::string bytes = wire::encode_entry(entry);
  const size_t size = bytes.size();
  ++under_way_;
  under_way_bytes_ += size;
  replica_->propose(std::move(bytes), [this, waiters, size](const Proposed& proposed) {
    --under_way_;
    under_way_bytes_ -= size;
    done(*waiters, proposed);
  });
}

void Writes::done(const std::vector<Waiter>& waiters, const Proposed& proposed) {
  Fate fate;
  fate.index = proposed.index;
  const std::vector<Result>* results = nullptr;
  if (proposed.kind == Proposed::kApplied) {
    results = &results_(proposed.index);
    if (results->size() != waiters.size())
      results = nullptr;  // not the entry that we proposed: its fate is unknown
  }
  for (size_t i = 0; i < waiters.size(); ++i) {
    fate.kind = results != nullptr                       ? Fate::kResult
                : proposed.kind == Proposed::kNotApplied ? Fate::kNotApplied
                                                         : Fate::kUnknown;
    fate.result = results != nullptr ? &(*results)[i] : nullptr;
    done_(waiters[i], fate);
  }
}

void Writes::refuse_added() {
  std::vector<Added> added = std::move(added_);
  added_.clear();
  Fate fate;
  fate.kind = Fate::kNotApplied;
  for (const Added& each : added) done_(each.waiter, fate);
}

}  // namespace xce::service
