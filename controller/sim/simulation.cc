#include "controller/sim/simulation.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/sim/daemons.h"
#include "controller/sim/faults.h"
#include "controller/sim/machine.h"
#include "controller/sim/network.h"
#include "controller/sim/oracle.h"
#include "controller/sim/user.h"
#include "controller/sim/world.h"

namespace xce::sim {
namespace {

constexpr uint64_t kHealWithin = 10 * kSecond;
constexpr uint64_t kAnswersWithin = 10 * kSecond;

class Simulation {
 public:
  Simulation(uint64_t seed, bool print) : world_(seed, print), network_(&world_), oracle_(&world_) {
    Random& random = world_.random();
    const uint64_t size = random.below(10);
    const int controllers = size == 0 ? 1 : size <= 7 ? 3 : 5;
    world_.tell(absl::StrCat("seed ", seed, ", ", controllers, " controllers"));
    consensus::Options options;
    for (int id = 1; id <= controllers; ++id)
      options.peers.push_back(
          {static_cast<uint64_t>(id), absl::StrCat("node-", id), static_cast<uint16_t>(id)});
    options.data_dir = "/data";
    options.segment_bytes = 64 << 10;
    options.snapshot_log_bytes = random.one_in(4) ? 0 : random.between(4, 60) << 10;
    options.snapshot_trailing = random.below(30);
    options.snapshot_retry_ms = 200;
    for (int id = 1; id <= controllers; ++id) {
      options.self = static_cast<uint64_t>(id);
      machines_.push_back(std::make_unique<Machine>(&world_, &network_, &oracle_, options));
    }
    const int users = static_cast<int>(random.between(2, 4));
    for (int i = 0; i < users; ++i)
      users_.push_back(
          std::make_unique<User>(&world_, &network_, &oracle_, &gossip_, i, controllers));
    daemons_.push_back(std::make_unique<Scheduler>(&world_, &network_, &oracle_, 0, controllers));
    for (int i = 1; i <= 2; ++i)
      daemons_.push_back(std::make_unique<Worker>(&world_, &network_, &oracle_, i, controllers));
    faults_ = std::make_unique<Faults>(&world_, &network_, &machines_);
  }

  Report run() {
    Random& random = world_.random();
    for (const auto& machine : machines_)
      world_.after(random.below(300) * kMs, [&machine] { machine->start(); });
    for (const auto& user : users_)
      user->start(static_cast<int>(random.between(1, 4)), random.between(10, 60) * kMs);
    for (const auto& daemon : daemons_) daemon->start();
    const uint64_t peace = random.between(4, 12) * kSecond;
    world_.after(kSecond, [this, peace] { faults_->start(peace); });
    world_.run_until(peace);
    faults_->end_all();
    heal(peace);
    if (machines_.size() > 1) one_standby_alone_deposes_nobody();
    return report();
  }

 private:
  bool all_equal() const {
    for (const auto& machine : machines_)
      if (machine->state() == nullptr || machine->state()->applied() != oracle_.last_index())
        return false;
    return true;
  }
  bool all_connected() const {
    for (const auto& machine : machines_) {
      if (machine->consensus() == nullptr) return false;
      for (const consensus::PeerStatus& peer : machine->consensus()->peers())
        if (!peer.connected) return false;
    }
    return true;
  }
  bool all_idle() const {
    for (const auto& user : users_)
      if (!user->idle()) return false;
    for (const auto& daemon : daemons_)
      if (!daemon->idle()) return false;
    return true;
  }

  // Everybody is answered, and all nodes come to the same state, in time.
  void heal(uint64_t since) {
    bool answered = false;
    for (const auto& user : users_) user->stop();
    for (const auto& daemon : daemons_) daemon->stop();
    users_.front()->probe(&answered);
    while (!world_.is_wrong()) {
      world_.run_until(world_.now() + 20 * kMs);
      for (const auto& machine : machines_) machine->look_after();
      if (answered && all_equal() && all_idle()) break;
      if (world_.now() - since < kHealWithin) continue;
      for (const auto& machine : machines_) world_.tell(machine->describe());
      world_.wrong(absl::StrCat("not healed ", kHealWithin / kMs,
                                " ms after the last fault: ", answered ? "" : "nobody serves; ",
                                all_equal() ? "" : "not all nodes have caught up; ",
                                all_idle() ? "" : "calls are not answered"));
    }
    healed_ms_ = static_cast<double>(world_.now() - since) / 1e6;
    if (world_.is_wrong()) return;
    oracle_.check_model();
    for (const auto& machine : machines_) oracle_.check_equal(machine->id(), *machine->state());
    world_.tell(absl::StrCat("all is well after ", oracle_.writes(), " writes"));
  }

  // The primary's process looks gone to one standby, and perhaps nothing more comes from it there.
  void one_standby_alone_deposes_nobody() {
    for (int i = 0; i < 250 && !all_connected(); ++i) world_.run_until(world_.now() + 20 * kMs);
    Machine* primary = nullptr;
    for (const auto& machine : machines_)
      if (machine->serving()) primary = machine.get();
    if (primary == nullptr || world_.is_wrong()) return;
    const uint64_t term = primary->consensus()->role().term;
    const HostId a = primary->id();
    const HostId b = a % static_cast<HostId>(machines_.size()) + 1;
    world_.tell(absl::StrCat("node ", a, " looks gone to node ", b));
    network_.refuse(b, a, true);
    if (world_.random().one_in(2)) network_.cut(a, b);
    network_.reset_between(a, b);
    world_.run_until(world_.now() + 1500 * kMs);
    if (!primary->serving() || primary->consensus()->role().term != term)
      world_.wrong(
          absl::StrCat("node ", b, " alone deposed node ", a, ", which serves the others"));
  }

  Report report() {
    Report report;
    report.wrong = world_.what_is_wrong();
    report.hash = world_.hash();
    report.events = world_.events();
    report.writes = oracle_.writes();
    report.terms = oracle_.terms();
    for (const auto& user : users_) report.reads_and_writes += user->done();
    report.simulated_s = static_cast<double>(world_.now()) / 1e9;
    report.healed_ms = healed_ms_;
    return report;
  }

  World world_;
  Network network_;
  Oracle oracle_;
  Gossip gossip_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<User>> users_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::unique_ptr<Faults> faults_;
  double healed_ms_ = 0;
};

}  // namespace

Report simulate(uint64_t seed, bool print) { return Simulation(seed, print).run(); }

}  // namespace xce::sim
