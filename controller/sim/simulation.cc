#include "controller/sim/simulation.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/sim/admin.h"
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
    const int spares = random.one_in(3) ? 2 : 0;  // members change
    world_.tell(absl::StrCat("seed ", seed, ", ", controllers, " controllers and ", spares));
    consensus::Options options;
    for (int id = 1; id <= controllers; ++id)
      options.peers.push_back(
          {static_cast<uint64_t>(id), absl::StrCat("node-", id), static_cast<uint16_t>(id)});
    options.data_dir = "/data";
    options.segment_bytes = 64 << 10;
    options.snapshot_log_bytes = random.one_in(4) ? 0 : random.between(4, 60) << 10;
    options.snapshot_trailing = random.below(30);
    options.snapshot_retry_ms = 200;
    for (int id = 1; id <= controllers + spares; ++id) {
      options.self = static_cast<uint64_t>(id);
      options.advertise_host = absl::StrCat("node-", id);
      options.advertise_port = static_cast<uint16_t>(id);
      options.join = id > controllers;
      machines_.push_back(
          std::make_unique<Machine>(&world_, &network_, &oracle_, options, spares > 0));
    }
    admin_ = std::make_unique<Admin>(&world_, &machines_, controllers);
    const int candidates = controllers + spares;
    const int users = static_cast<int>(random.between(2, 4));
    for (int i = 0; i < users; ++i)
      users_.push_back(
          std::make_unique<User>(&world_, &network_, &oracle_, &gossip_, i, candidates));
    daemons_.push_back(std::make_unique<Scheduler>(&world_, &network_, &oracle_, 0, candidates));
    for (int i = 1; i <= 2; ++i)
      daemons_.push_back(std::make_unique<Worker>(&world_, &network_, &oracle_, i, candidates));
    faults_ = std::make_unique<Faults>(&world_, &network_, &machines_);
    members_change_ = spares > 0;
  }

  RunReport run() {
    Random& random = world_.random();
    for (const auto& machine : machines_)
      world_.after(random.below(300) * kMs, [&machine] { machine->start(); });
    for (const auto& user : users_)
      user->start(static_cast<int>(random.between(1, 4)), random.between(10, 60) * kMs);
    for (const auto& daemon : daemons_) daemon->start();
    const uint64_t peace = random.between(4, 12) * kSecond;
    world_.after(kSecond, [this, peace] {
      faults_->start(peace);
      if (members_change_) admin_->start(peace);
    });
    world_.run_until(peace);
    faults_->end_all();
    heal(peace);
    if (members().size() > 2) one_standby_alone_deposes_nobody();
    return report();
  }

 private:
  std::vector<Machine*> members() const {
    std::vector<Machine*> members;
    for (const auto& machine : machines_)
      if (admin_->is_member(*machine)) members.push_back(machine.get());
    return members;
  }
  bool all_equal() const {
    for (const Machine* const machine : members())
      if (machine->state() == nullptr || machine->state()->applied() != oracle_.last_index())
        return false;
    return true;
  }
  bool all_connected() const {
    for (Machine* const machine : members()) {
      if (machine->consensus() == nullptr) return false;
      for (const consensus::PeerStatus& peer : machine->consensus()->peers())
        if (!peer.connected) return false;
    }
    return true;
  }
  bool all_idle() const {
    if (!admin_->idle()) return false;
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
                                all_idle() ? "" : "calls are not answered; ",
                                admin_->idle() ? "" : "a change of members is not done"));
    }
    healed_ms_ = static_cast<double>(world_.now() - since) / 1e6;
    if (world_.is_wrong()) return;
    oracle_.check_model();
    for (const Machine* const machine : members())
      oracle_.check_equal(machine->id(), *machine->state());
    world_.tell(absl::StrCat("all is well after ", oracle_.writes(), " writes"));
  }

  // The primary's process looks gone to one standby, and perhaps nothing more comes from it there.
  void one_standby_alone_deposes_nobody() {
    for (int i = 0; i < 250 && !all_connected(); ++i) world_.run_until(world_.now() + 20 * kMs);
    const std::vector<Machine*> members = this->members();
    Machine* primary = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i]->serving()) primary = members[at = i];
    if (primary == nullptr || world_.is_wrong()) return;
    const uint64_t term = primary->consensus()->role().term;
    const HostId a = primary->id();
    const HostId b = members[(at + 1) % members.size()]->id();
    world_.tell(absl::StrCat("node ", a, " looks gone to node ", b));
    network_.refuse(b, a, true);
    if (world_.random().one_in(2)) network_.cut(a, b);
    network_.reset_between(a, b);
    world_.run_until(world_.now() + 1500 * kMs);
    if (!primary->serving() || primary->consensus()->role().term != term)
      world_.wrong(
          absl::StrCat("node ", b, " alone deposed node ", a, ", which serves the others"));
  }

  RunReport report() {
    RunReport report;
    report.wrong = world_.what_is_wrong();
    report.hash = world_.hash();
    report.events = world_.events();
    report.writes = oracle_.writes();
    report.terms = oracle_.terms();
    report.member_changes = admin_->changes();
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
  std::unique_ptr<Admin> admin_;
  bool members_change_ = false;
  double healed_ms_ = 0;
};

}  // namespace

RunReport simulate(uint64_t seed, bool print) { return Simulation(seed, print).run(); }

}  // namespace xce::sim
