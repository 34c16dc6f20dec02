// Reservations: who may make them, and what they keep others from.
#include <gmock/gmock.h>

#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

ReservationControl make(const std::string& name, std::vector<std::string> hosts, int64_t start_ms,
                        int64_t end_ms, std::vector<std::string> users, uint32_t cpus = 0) {
  ReservationControl control;
  control.reservation.name = name;
  control.reservation.hosts = std::move(hosts);
  control.reservation.start_ms = start_ms;
  control.reservation.end_ms = end_ms;
  control.reservation.users = std::move(users);
  control.reservation.cpus = cpus;
  return control;
}

ReservationControl removal(const std::string& name) {
  ReservationControl control;
  control.action = ReservationAction::kRemove;
  control.reservation.name = name;
  return control;
}

class Reservations : public testing::Test {
 protected:
  Reservations() {
    c.time_ms = 1'000'000;
    c.join_scheduler("s", 1);
    c.join_host("n1", 4);
    c.join_host("n2", 4);
  }
  JobId submit(const Identity& who, uint32_t time_limit_s, uint32_t cpus = 1) {
    JobSpec spec = a_job();
    spec.time_limit_s = time_limit_s;
    spec.cpus = cpus;
    return c.run(who, spec).job;
  }
  Cluster c;
};

TEST_F(Reservations, AreMadeTakenBackAndEndByThemselves) {
  EXPECT_EQ(c.says(alice(), make("r", {"n1"}, 0, 2'000'000, {"bob"})), "PERM: ");
  EXPECT_EQ(c.says(root(), make("r", {"n2", "n1", "n1"}, 0, 2'000'000, {"bob"})),
            "ok: reservation r");
  const Reservation& made = c.state.reservations().at("r");
  EXPECT_EQ(made.start_ms, 1'000'000);  // now
  EXPECT_EQ(made.hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(c.says(root(), make("r", {"n1"}, 0, 2'000'000, {"bob"})), "INVALID: ");
  EXPECT_EQ(c.says(root(), removal("r")), "ok: reservation r gone");
  EXPECT_EQ(c.says(root(), removal("r")), "NOENT: ");
  c.run(root(), make("r", {"n1"}, 0, 2'000'000, {"bob"}));
  c.time_ms = 1'999'999;
  EXPECT_EQ(c.says(controller(), Tick{}), "ok: ");
  c.time_ms = 2'000'000;
  EXPECT_EQ(c.says(controller(), Tick{}), "ok: reservation r gone");
}

TEST_F(Reservations, RefuseWhatMakesNoSenseAndSayWhy) {
  const auto refused = [&](const ReservationControl& control) {
    const Result result = c.run(root(), control);
    return words(result.status) + ": " + result.message;
  };
  EXPECT_THAT(refused(make("a b", {"n1"}, 0, 2'000'000, {"bob"})),
              testing::HasSubstr("INVALID: a reservation's name has"));
  EXPECT_THAT(refused(make("r", {"n1"}, 0, 999'999, {"bob"})), testing::HasSubstr("in the future"));
  EXPECT_THAT(refused(make("r", {"n1"}, 3'000'000, 2'000'000, {"bob"})),
              testing::HasSubstr("ends after it starts"));
  EXPECT_THAT(refused(make("r", {"n1"}, 0, 2'000'000, {})),
              testing::HasSubstr("name users, queues or both"));
  EXPECT_THAT(refused(make("r", {}, 0, 2'000'000, {"bob"})), testing::HasSubstr("keeps 1 to"));
  EXPECT_THAT(refused(make("r", {"n9"}, 0, 2'000'000, {"bob"})),
              testing::HasSubstr("NOENT: there is no host 'n9'"));
  EXPECT_THAT(refused(make("r", {"n1"}, 0, 2'000'000, {"bob"}, 5)),
              testing::HasSubstr("has 4 cpus, not 5"));
  ReservationControl queue = make("r", {"n1"}, 0, 2'000'000, {});
  queue.reservation.queues = {"lab"};
  EXPECT_THAT(refused(queue), testing::HasSubstr("there is no queue 'lab'"));
  c.run(root(), make("r", {"n1"}, 1'500'000, 2'000'000, {"bob"}));
  EXPECT_THAT(refused(make("s", {"n1", "n2"}, 0, 1'500'001, {"bob"})),
              testing::HasSubstr("BUSY: reservation 'r' keeps some of these hosts"));
  EXPECT_EQ(c.run(root(), make("s", {"n1", "n2"}, 0, 1'500'000, {"bob"})).status, 0);
}

TEST_F(Reservations, OthersStartThereOnlyWhenTheyEndBefore) {
  c.run(root(), make("r", {"n1"}, 1'100'000, 2'000'000, {"bob"}));
  const JobId fits = submit(alice(), 100), too_long = submit(alice(), 111),
              endless = submit(alice(), 0), owner = submit(bob(), 0);
  EXPECT_EQ(c.dispatch(c.plan(too_long, {"n1"})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(endless, {"n1"})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(fits, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
  EXPECT_EQ(c.dispatch(c.plan(owner, {"n1"})), "ok: host n1 UP 2/4, job 4 STARTING @n1");
  EXPECT_EQ(c.dispatch(c.plan(endless, {"n2"})), "ok: host n2 UP 1/4, job 3 STARTING @n2");
  c.time_ms = 1'100'001;  // in force: not even for a moment
  const JobId moment = submit(alice(), 1);
  EXPECT_EQ(c.dispatch(c.plan(moment, {"n1"})), "STALE: ");
}

TEST_F(Reservations, OfCpusKeepsThoseAndLeavesTheRest) {
  c.run(root(), make("r", {"n1"}, 0, 2'000'000, {"bob"}, 3));
  const JobId two = submit(alice(), 0, 2), one = submit(alice(), 0), more = submit(alice(), 0),
              owner = submit(bob(), 0, 3);
  EXPECT_EQ(c.dispatch(c.plan(two, {"n1"}, 2)), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(one, {"n1"})), "ok: host n1 UP 1/4, job 2 STARTING @n1");
  EXPECT_EQ(c.dispatch(c.plan(more, {"n1"})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(owner, {"n1"}, 3)), "ok: host n1 UP 4/4, job 4 STARTING @n1");
}

TEST_F(Reservations, AreForQueuesToo) {
  QueueControl lab;
  lab.queue.name = "lab";
  c.run(root(), lab);
  ReservationControl control = make("r", {"n1"}, 0, 2'000'000, {});
  control.reservation.queues = {"lab"};
  c.run(root(), control);
  JobSpec spec = a_job();
  spec.queue = "lab";
  const JobId in_lab = c.run(alice(), spec).job, elsewhere = submit(alice(), 0);
  EXPECT_EQ(c.dispatch(c.plan(elsewhere, {"n1"})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(in_lab, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
}

}  // namespace
}  // namespace xce::state
