// One controller's machine: its disk, its clock, and, while it runs, its process with the real
// consensus, state machine and service. Kills, pauses, loses power, restarts.
//
// A process has one loop, as the real one: whatever arrives lies in an inbox until the next turn. A
// turn takes what came, then the timers that are due, then what is to be done before the loop
// waits. Threads are jobs that end at some later time. A paused process does nothing at all; what
// comes meanwhile waits in the kernel.
#ifndef XCE_CONTROLLER_SIM_MACHINE_H_
#define XCE_CONTROLLER_SIM_MACHINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/consensus/consensus.h"
#include "controller/service/real_replica.h"
#include "controller/service/service.h"
#include "controller/sim/disk.h"
#include "controller/sim/network.h"
#include "controller/sim/oracle.h"
#include "controller/sim/world.h"
#include "controller/state/state.h"

namespace xce::sim {

class Machine final : public consensus::StateMachine, public consensus::Listener {
 public:
  // options: for every start, until wipe(); self and peers are set. members_change: nodes may be
  // refused and removed.
  Machine(World* world, Network* network, Oracle* oracle, consensus::Options options,
          bool members_change);
  ~Machine() override;

  HostId id() const { return static_cast<HostId>(options_.self); }
  Disk& disk() { return disk_; }

  // ---- life
  void start();
  bool up() const { return process_ != nullptr; }
  void kill();        // -9
  void lose_power();  // and does not come back before start()
  // Loses everything on its disk, and starts to join the cluster of these controllers.
  void wipe(std::vector<consensus::Peer> peers);
  void pause();
  void resume();
  bool paused() const { return paused_; }
  void jump_wall_clock(int64_t by_ms) { wall_offset_ms_ += by_ms; }
  // Writes and syncs of the log take so long, in nanoseconds.
  void set_disk_delay(uint64_t low, uint64_t high);
  // What it has said when it stopped taking part; empty: it has not.
  const std::string& fatal() const { return fatal_; }
  // From now on the disk fails with this errno (0: it works again), and the process may stop.
  void fail_disk(int error);
  // What a person does: a process that has stopped because of its disk is started again once that
  // works.
  void look_after();

  consensus::Consensus* consensus() { return process_ ? process_->consensus.get() : nullptr; }
  const state::State* state() const { return process_ ? process_->state.get() : nullptr; }
  std::string describe() const;  // a line for people
  bool serving() const { return process_ && process_->service->serving(); }

  // ---- for its surroundings (surroundings.cc)
  World* world() { return world_; }
  Network* network() { return network_; }
  uint64_t clock_ns() const { return world_->now() + clock_base_; }
  Random& random() { return random_; }
  uint64_t disk_delay() { return random_.between(disk_low_, disk_high_); }
  // Does something in the next turn of the loop; as a message that has come.
  void post(std::function<void()> run);
  // What a thread does once `delay` is over; forgotten when the process ends.
  void work_after(uint64_t delay, std::function<void()> run);
  uint64_t add_timer(std::function<void()> fire);
  void start_timer(uint64_t timer, uint64_t delay_ms);
  void stop_timer(uint64_t timer);
  void remove_timer(uint64_t timer);
  void set_turns(std::function<void()> flush, std::function<void()> more);
  void set_busy(bool busy);
  // It and another node do not want to talk.
  void refused(const std::string& why);
  void set_listener(std::function<Sink(const ConnectionPtr&)> peers) {
    if (up()) process_->accept_peer = std::move(peers);
  }
  // The process is about to be killed: nothing leaves it any more.
  bool dying() const { return disk_.died() || die_now_; }
  void die_soon() { die_now_ = true; }
  // The write during which a kill or a loss of power falls.
  void set_disk_write(std::function<void()> write) {
    if (up()) process_->disk_write = std::move(write);
  }

 private:
  struct Timer {
    uint64_t due = 0;  // 0: does not run
    std::function<void()> fire;
  };
  struct Client {  // a connection of one
    ConnectionPtr connection;
    std::shared_ptr<const Identity> who;
    std::shared_ptr<push::Flow> flow;
  };
  struct Process {
    std::unique_ptr<state::State> state;
    std::unique_ptr<consensus::Consensus> consensus;
    std::unique_ptr<service::RealReplica> replica;
    std::unique_ptr<service::Service> service;
    std::vector<std::function<void()>> inbox;
    std::map<uint64_t, Timer> timers;
    std::function<void()> flush, more, disk_write;
    std::function<Sink(const ConnectionPtr&)> accept_peer;
    std::map<push::ConnId, Client> clients;
    std::vector<service::Inbound> inbound;
    bool busy = false;
    bool turn_due = false;
    uint64_t turn_at = 0;
  };

  void end_process();
  void wake_at(uint64_t time);
  void turn();
  bool take_inbox();
  bool run_timers();
  void before_wait();
  void sleep();
  void next_service_tick();
  Sink accept(const ConnectionPtr& connection);
  void from_client(push::ConnId id, NetEvent event);
  void to_clients(std::vector<service::Outgoing> outgoing);

 public:
  // ---- what consensus calls
  void apply(uint64_t index, uint64_t term, std::string_view entry) override;
  bool save(const std::function<bool(std::string_view)>& write) const override;
  absl::StatusOr<std::unique_ptr<Restored>> load(
      const std::function<size_t(char*, size_t)>& read) override;
  void restore(uint64_t index, Restored* state) override;
  void on_role(const consensus::RoleInfo& role) override;
  void on_fatal(absl::Status status) override;

 private:
  World* const world_;
  Network* const network_;
  Oracle* const oracle_;
  consensus::Options options_;
  const bool members_change_;
  Random random_;
  Disk disk_;
  const uint64_t clock_base_;
  int64_t wall_offset_ms_ = 0;
  uint64_t disk_low_ = 50 * kUs, disk_high_ = 2 * kMs;
  std::unique_ptr<Process> process_;
  uint64_t incarnation_ = 0;
  uint64_t last_id_ = 0;  // of timers and connections
  bool paused_ = false;
  bool die_now_ = false;
  bool removed_ = false;                               // it was told so
  std::vector<std::function<void()>> held_;            // jobs that ended while it was paused
  bool disk_fails_ = false, disk_has_failed_ = false;  // now; in the life of the process
  std::string fatal_;
};

// The simulated surroundings of its consensus.
std::unique_ptr<consensus::Surroundings> surroundings_of(Machine* machine);

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_MACHINE_H_
