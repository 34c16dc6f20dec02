// A scheduler and workers as the controllers see them: they join again on each new connection, take
// the state by reading it, dispatch, and report starts and ends in a numbered outbox until each is
// confirmed. No pushes: they ask.
#ifndef XCE_CONTROLLER_SIM_DAEMONS_H_
#define XCE_CONTROLLER_SIM_DAEMONS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/sim/context.h"
#include "controller/sim/oracle.h"

namespace xce::sim {

// What both do: one round after the other, each of a few calls.
class Daemon {
 public:
  Daemon(World* world, Network* network, Oracle* oracle, int number, Identity who, int controllers);
  virtual ~Daemon() = default;
  void start() { next(); }
  void stop() { stopped_ = true; }
  bool idle() const { return context_.under_way() == 0; }

 protected:
  void next();
  virtual void joined(const service::JoinedBody& body) = 0;
  virtual void round() = 0;
  virtual Join join() = 0;
  // Calls; a success is told to the oracle, and anything else ends the round.
  void ask(service::Ask ask, decltype(service::Request::what) what,
           std::function<void(const service::Answer&)> then);
  void rejoin() { generation_ = 0; }

  World* const world_;
  Oracle* const oracle_;
  Random random_;
  Context context_;
  const std::string name_;

 private:
  uint64_t generation_ = 0;  // that it has joined on
  bool stopped_ = false;
};

class Scheduler final : public Daemon {
 public:
  Scheduler(World* world, Network* network, Oracle* oracle, int number, int controllers);

 private:
  Join join() override;
  void joined(const service::JoinedBody& body) override { epoch_ = body.epoch; }
  void round() override;
  void plan(const std::vector<Job>& pending, const std::vector<Host>& hosts);

  uint64_t epoch_ = 0;
};

class Worker final : public Daemon {
 public:
  Worker(World* world, Network* network, Oracle* oracle, int number, int controllers);

 private:
  Join join() override;
  void joined(const service::JoinedBody& body) override { confirmed(body.outbox_applied); }
  void round() override;
  void look_at(const std::vector<Job>& jobs);
  void report(const Job& job, NotifyKind kind, JobState outcome);
  void confirmed(uint64_t seq);

  const uint64_t instance_;
  std::map<std::pair<JobId, uint32_t>, uint64_t> runs_;  // attempts and when they end
  std::deque<Report> outbox_;
  uint64_t last_report_ = 0;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_DAEMONS_H_
