// The active scheduler, its dispatches and its reasons.
#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

TEST(Scheduler, TheNewestTakesOverAndTheOldIsStale) {
  Cluster c;
  c.join_host("n1", 4);
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch_at(0, c.plan(1, {"n1"})), "STALE: ");  // nobody has joined
  EXPECT_EQ(c.join_scheduler("s1", 1), "ok epoch 1: scheduler s1 1");
  EXPECT_EQ(c.join_scheduler("s1", 1), "ok epoch 1: ");
  EXPECT_EQ(c.join_scheduler("s2", 2), "ok epoch 2: scheduler s2 2");
  EXPECT_EQ(c.dispatch_at(1, c.plan(1, {"n1"})), "STALE: ");
  EXPECT_EQ(c.message(),
            "epoch 1 is over: the active scheduler is 's2' of epoch 2; join to take over");
  EXPECT_EQ(c.dispatch_at(2, c.plan(1, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
  EXPECT_EQ(c.says(alice(), Dispatches{2, {}}), "PERM: ");
}

TEST(Dispatch, TheSameAgainIsSuccess) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 4);
  c.join_host("n2", 4);
  c.run(alice(), a_job());
  const Dispatch plan = c.plan(1, {"n1"});
  const Dispatch elsewhere = c.plan(1, {"n2"});
  c.dispatch(plan);
  EXPECT_EQ(c.dispatch(plan), "ok: ");
  EXPECT_EQ(c.dispatch(elsewhere), "STALE: ");
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, 1)});
  EXPECT_EQ(c.dispatch(plan), "ok: ");  // it was done, and is over
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(9, {"n1"})), "NOENT: ");
}

// Each gpu belongs to one job at a time; the lowest free ones are given.
TEST(Dispatch, SaysWhichOfAHostsResourcesAJobHas) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 8, 100, 1, {{"gpu", 4}, {"licence", 5000}});
  const auto start = [&](uint32_t gpus) {
    JobSpec spec = a_job();
    spec.gres = {{"gpu", gpus}};
    Dispatch plan = c.plan(c.run(alice(), spec).job, {"n1"});
    plan.allocs[0].gres = {{"gpu", gpus}, {"licence", 7}};
    c.dispatch(plan);
    EXPECT_EQ(c.dispatch(plan), "ok: ");  // the same again is the same, whatever it was given
    return plan.job;
  };
  const auto gpus = [&](JobId id) { return c.state.job(id)->allocs[0].gres[0].indices; };
  const JobId a = start(1), b = start(2);
  EXPECT_EQ(gpus(a), (std::vector<uint32_t>{0}));
  EXPECT_EQ(gpus(b), (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(c.state.job(a)->allocs[0].gres[1].indices.empty());  // too many to be told apart
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, a)});
  const JobId d = start(2);
  EXPECT_EQ(gpus(d), (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(gpus(a), (std::vector<uint32_t>{0}));  // for the record
}

TEST(Dispatch, NeverGivesAwayWhatIsNotFree) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 2, 100, 1, {{"gpu", 1}});
  JobSpec spec = a_job();
  spec.memory_mb = 60;
  spec.gres = {{"gpu", 1}};
  c.run(alice(), spec);
  c.run(alice(), a_job());
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "INVALID: ");  // less than it asks for
  Dispatch plan = c.plan(1, {"n1"});
  plan.allocs[0].memory_mb = 60;
  plan.allocs[0].gres = {{"gpu", 1}};
  EXPECT_EQ(c.dispatch(plan), "ok: host n1 UP 1/2, job 1 STARTING @n1");
  Dispatch gpu = c.plan(2, {"n1"});
  gpu.allocs[0].gres = {{"gpu", 1}};
  EXPECT_EQ(c.dispatch(gpu), "STALE: ");
  Dispatch memory = c.plan(2, {"n1"});
  memory.allocs[0].memory_mb = ~uint64_t{0};
  EXPECT_EQ(c.dispatch(memory), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1"}, ~uint32_t{0})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(2, {"n7"})), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(2, {})), "INVALID: ");
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1", "n1"})), "INVALID: ");
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1"})), "ok: host n1 UP 2/2, job 2 STARTING @n1");
  EXPECT_EQ(c.dispatch(c.plan(3, {"n1"})), "STALE: ");
}

TEST(Dispatch, SeveralHostsAndHostsForOneselfAlone) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 2);
  c.join_host("n2", 2);
  JobSpec wide = a_job();
  wide.nodes = 2;
  JobSpec alone = a_job();
  alone.exclusive = true;
  c.run(alice(), wide);
  c.run(alice(), alone);
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "INVALID: ");
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1", "n2"})),
            "ok: host n1 UP 1/2, host n2 UP 1/2, job 1 STARTING @n1 @n2");
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1"})), "STALE: ");  // not empty
  EXPECT_EQ(c.notify("n2", {c.report("n2", NotifyKind::kFinish, 1)}),
            "ok: outbox n2 1");  // not the first host
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kFinish, 1)}),
            "ok: host n1 UP 0/2, host n2 UP 0/2, job 1 COMPLETED, outbox n1 1");
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1"})), "ok: host n1 UP 1/2, job 2 STARTING @n1");
  EXPECT_EQ(c.dispatch(c.plan(3, {"n1"})), "STALE: ");  // held for itself
  EXPECT_EQ(c.dispatch(c.plan(3, {"n2"})), "ok: host n2 UP 1/2, job 3 STARTING @n2");
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, 2)});
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(4, {"n1"})), "ok: host n1 UP 1/2, job 4 STARTING @n1");
}

TEST(Dispatch, OnlyTheNextAttempt) {
  Cluster c;
  c.running();
  Dispatch first = c.plan(1, {"n1"});
  first.attempt = 1;
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, 1)});
  c.control(alice(), JobAction::kRequeue, {1});
  Dispatch third = c.plan(1, {"n1"});
  third.attempt = 3;
  EXPECT_EQ(c.dispatch(first), "STALE: ");  // delayed on its way: the job waits for attempt 2 now
  EXPECT_EQ(c.dispatch(third), "STALE: ");
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
  // What the first attempt still reports is not believed of the second.
  Report late = c.report("n1", NotifyKind::kFinish, 1);
  late.attempt = 1;
  EXPECT_EQ(c.notify("n1", {late}), "ok: outbox n1 3");
}

TEST(Reasons, AreToldWhenTheyChange) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.run(alice(), a_job());
  JobSpec held = a_job();
  held.hold = true;
  c.run(alice(), held);
  const Identity s = a_daemon(Role::kScheduler, "s");
  const PendReasons reasons{1, {{1, "waiting for 1 CPU"}, {2, "?"}, {9, "?"}}};
  EXPECT_EQ(c.says(s, reasons), "ok: job 1 PENDING");
  EXPECT_EQ(c.applied.results[0].count, 1u);
  EXPECT_EQ(c.job(1).reason, "waiting for 1 CPU");
  EXPECT_EQ(c.job(2).reason, "held at submission");
  EXPECT_EQ(c.says(s, reasons), "ok: ");
  EXPECT_EQ(c.says(s, PendReasons{7, {}}), "STALE: ");
}

TEST(Reasons, AHopelessJobIsEnded) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.run(alice(), a_job());
  JobSpec after = a_job();
  after.dependencies = {{DependencyKind::kAfterOk, 1}};
  c.run(alice(), after);
  const Identity s = a_daemon(Role::kScheduler, "s");
  const std::string why = "dependency can never be met: job 1 failed";
  EXPECT_EQ(c.says(s, PendReasons{9, {{2, why, true}}}), "STALE: ");
  // Without dependencies no job is hopeless: it only has a reason.
  EXPECT_EQ(c.says(s, PendReasons{1, {{1, why, true}, {2, why, true}}}),
            "ok: job 1 PENDING, job 2 KILLED");
  EXPECT_EQ(c.job(2).reason, why);
  EXPECT_GT(c.job(2).end_ms, 0);
}

TEST(Evictions, StopARunningAttemptThatThenWaitsAgain) {
  Cluster c;
  const JobId id = c.running();
  const Identity s = a_daemon(Role::kScheduler, "s");
  Dispatches evict{1, {}, {{id, 1, "makes room for job 9"}}};
  EXPECT_EQ(c.says(s, evict), "ok: ");  // its queue's jobs give way to nobody
  Queue given;
  given.name = "default";
  given.preemptible = true;
  c.run(root(), QueueControl{QueueAction::kUpdate, given, 1024});
  evict.evictions[0].attempt = 2;
  EXPECT_EQ(c.says(s, evict), "ok: ");  // another attempt is meant
  evict.evictions[0].attempt = 1;
  EXPECT_EQ(c.says(alice(), evict), "PERM: ");
  EXPECT_EQ(c.says(s, evict), "ok: job 1 RUNNING to-kill @n1");
  EXPECT_EQ(c.job(id).reason, "makes room for job 9");
  EXPECT_EQ(c.says(s, evict), "ok: ");
  Report end = c.report("n1", NotifyKind::kFinish, id);
  end.outcome = JobState::kKilled;
  EXPECT_EQ(c.notify("n1", {end}), "ok: host n1 UP 0/4, job 1 PENDING, outbox n1 2");
  EXPECT_EQ(c.dispatch(c.plan(id, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
}

}  // namespace
}  // namespace xce::state
