#include "controller/sim/faults.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace xce::sim {

Faults::Faults(World* world, Network* network, std::vector<std::unique_ptr<Machine>>* machines)
    : world_(world), network_(network), machines_(machines), random_(world->random().fork()) {
  for (int kind = 0; kind < kKinds; ++kind)
    if (random_.one_in(2)) kinds_.push_back(static_cast<Kind>(kind));
  if (kinds_.empty()) kinds_.push_back(kKill);
  pause_ = random_.between(100, 1500) * kMs;
}

void Faults::start(uint64_t until) {
  until_ = until;
  next();
}

void Faults::next() {
  world_->after(random_.between(pause_ / 4, 2 * pause_), [this] {
    if (over_ || world_->now() >= until_) return;
    cause(kinds_[random_.below(kinds_.size())]);
    next();
  });
}

Machine* Faults::any() { return (*machines_)[random_.below(machines_->size())].get(); }

// Half of all faults hit the primary.
Machine* Faults::primary() {
  for (const auto& machine : *machines_)
    if (machine->serving() && random_.one_in(2)) return machine.get();
  return any();
}

void Faults::cause(Kind kind) {
  Machine* const machine = primary();
  switch (kind) {
    case kPowerAll:
      for (const auto& each : *machines_) {
        each->lose_power();
        start_later(each.get());
      }
      return;
    case kDelay:
      network_->set_delay(random_.between(0, 20) * kMs, random_.between(20, 250) * kMs);
      world_->tell("messages are delayed");
      world_->after(some_time(), [this] { network_->set_delay(100 * kUs, 600 * kUs); });
      return;
    case kIsolate:
    case kCutOne:
    case kCutOneWay:
    case kRefuse: return cut(kind, machine);
    default: return hit(kind, machine);
  }
}

void Faults::start_later(Machine* machine) {
  world_->after(some_time(), [this, machine] {
    if (!over_) machine->start();
  });
}

void Faults::hit(Kind kind, Machine* machine) {
  switch (kind) {
    case kKill: machine->kill(); return start_later(machine);
    case kKillAt:
      world_->tell(absl::StrCat("node ", machine->id(), " is to die at its disk"));
      machine->disk().die_after(random_.between(1, 60));
      return start_later(machine);
    case kPower: machine->lose_power(); return start_later(machine);
    case kPause:
      machine->pause();
      world_->after(some_time(), [machine] { machine->resume(); });
      return;
    case kReset: {
      const HostId other = any()->id();
      world_->tell(absl::StrCat("connections of nodes ", machine->id(), " and ", other, " break"));
      network_->reset_between(machine->id(), other);
      return;
    }
    case kSlowDisk: {
      const uint64_t low = random_.between(1, 300) * kMs;
      world_->tell(absl::StrCat("the disk of node ", machine->id(), " is slow"));
      machine->set_disk_delay(low, low * random_.between(1, 8));
      world_->after(some_time(), [machine] { machine->set_disk_delay(50 * kUs, 2 * kMs); });
      return;
    }
    case kBadDisk: return bad_disk(machine);
    case kClock:
      machine->jump_wall_clock((random_.one_in(2) ? 1 : -1) *
                               static_cast<int64_t>(random_.between(1, 7200000)));
      return;
    case kTransfer:
      if (machine->consensus() == nullptr || machine->paused()) return;
      world_->tell(absl::StrCat("node ", machine->id(), " is to hand over"));
      machine->post([machine] {
        if (machine->consensus() != nullptr) machine->consensus()->transfer(0, [](absl::Status) {});
      });
      return;
    default: return;
  }
}

void Faults::bad_disk(Machine* machine) {
  world_->tell(absl::StrCat("the disk of node ", machine->id(), " fails"));
  machine->fail_disk(random_.one_in(2) ? EIO : ENOSPC);
  world_->after(some_time(), [this, machine] {
    machine->fail_disk(0);
    if (over_) return;
    machine->look_after();
    machine->start();
  });
}

void Faults::cut(Kind kind, Machine* machine) {
  const HostId a = machine->id();
  if (kind == kIsolate) {
    world_->tell(absl::StrCat("node ", a, " is cut off from the others"));
    for (const auto& other : *machines_) {
      if (other.get() == machine) continue;
      network_->cut(a, other->id());
      network_->cut(other->id(), a);
    }
    world_->after(some_time(), [this, a] {
      world_->tell(absl::StrCat("node ", a, " is connected again"));
      for (const auto& other : *machines_) {
        network_->heal(a, other->id());
        network_->heal(other->id(), a);
      }
    });
    return;
  }
  const HostId b = any()->id();
  if (a == b) return;
  if (kind == kRefuse) {
    world_->tell(absl::StrCat("node ", a, " refuses node ", b));
    network_->refuse(b, a, true);
    network_->reset_between(a, b);
    world_->after(some_time(), [this, a, b] { network_->refuse(b, a, false); });
    return;
  }
  const bool both = kind == kCutOne;
  world_->tell(
      absl::StrCat("the link from node ", a, " to node ", b, " is cut", both ? ", and back" : ""));
  network_->cut(a, b);
  if (both) network_->cut(b, a);
  world_->after(some_time(), [this, a, b] {
    network_->heal(a, b);
    network_->heal(b, a);
  });
}

void Faults::end_all() {
  over_ = true;
  world_->tell("all faults end");
  network_->heal_all();
  network_->set_delay(100 * kUs, 600 * kUs);
  for (const auto& machine : *machines_) {
    machine->set_disk_delay(50 * kUs, 2 * kMs);
    machine->fail_disk(0);
    machine->disk().die_after(0);
    machine->resume();
    machine->look_after();
    machine->start();
  }
}

}  // namespace xce::sim
