// Commands that run inside running jobs.
#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

constexpr uint32_t kSigkill = 9;

JobSpec a_step(JobId job, std::vector<std::string> hosts = {},
               std::vector<std::string> args = {"hostname"}) {
  JobSpec spec = a_job(std::move(args));
  spec.step = std::make_shared<const Step>(Step{job, std::move(hosts), 0, 0, 0});
  return spec;
}

// Job 1 of alice runs on n1 and n2.
struct TwoHosts : Cluster {
  explicit TwoHosts(JobSpec spec = a_job()) {
    join_scheduler("s", 1);
    join_host("n1", 4);
    join_host("n2", 4);
    spec.nodes = 2;
    run(alice(), std::move(spec));
    dispatch(plan(1, {"n1", "n2"}, 2));
    notify("n1", {report("n1", NotifyKind::kStart, 1)});
  }
  std::string reports(const std::string& host, NotifyKind kind, JobId id,
                      JobState outcome = JobState::kCompleted, uint64_t instance = 1) {
    Report r = report(host, kind, id);
    r.outcome = outcome;
    return notify(host, {r}, instance);
  }
};

TEST(Steps, StartAtOnceWhereTheirJobRuns) {
  TwoHosts c;
  EXPECT_EQ(c.says(alice(), a_step(1)), "ok: job 2 STARTING @n1");
  EXPECT_EQ(c.says(alice(), a_step(1, {"n2"})), "ok: job 3 STARTING @n2");
  EXPECT_EQ(c.says(alice(), a_step(1, {"*"})), "ok: job 4 STARTING @n1, job 5 STARTING @n2");
  EXPECT_EQ(c.applied.results[0].job, 4u);
  EXPECT_EQ(c.applied.results[0].count, 2u);
  EXPECT_EQ(c.job(5).array_id, 4u);
  EXPECT_EQ(c.job(5).array_index, 1u);
  EXPECT_EQ(c.job(2).array_id, 0u);
  EXPECT_EQ(c.job(2).attempt, 1u);
  EXPECT_EQ(c.job(2).spec.name, "hostname");
  // They take nothing: their job holds it.
  EXPECT_EQ(c.state.hosts().at("n1").used_cpus, 2u);
  EXPECT_EQ(c.state.hosts().at("n1").running_jobs, 1u);
  EXPECT_EQ(c.reports("n2", NotifyKind::kStart, 3), "ok: job 3 RUNNING @n2, outbox n2 1");
  EXPECT_EQ(c.reports("n2", NotifyKind::kFinish, 3), "ok: job 3 COMPLETED, outbox n2 2");
}

TEST(Steps, AreWhatTheirJobIs) {
  JobSpec spec = a_job();
  spec.user = "alice";
  spec.uid = 1001;
  spec.gid = 55;
  spec.work_dir = "/home/alice";
  spec.memory_mb = 0;
  spec.array = {7};
  auto body = std::make_shared<JobBody>(*spec.body);
  body->env = {"A=1", "B=2"};
  spec.body = body;
  TwoHosts c(spec);
  JobSpec step = a_step(1);
  step.uid = 1;
  step.queue = "nowhere";
  step.nodes = 9;
  step.exclusive = true;
  auto own = std::make_shared<JobBody>(*step.body);
  own->env = {"B=3"};
  step.body = own;
  EXPECT_EQ(c.says(root(), step), "ok: job 2 STARTING @n1");
  const JobSpec& made = c.job(2).spec;
  EXPECT_EQ(made.user, "alice");
  EXPECT_EQ(made.uid, 1001u);
  EXPECT_EQ(made.gid, 55u);
  EXPECT_EQ(made.queue, "default");
  EXPECT_EQ(made.nodes, 1u);
  EXPECT_FALSE(made.exclusive);
  EXPECT_EQ(made.cpus, 2u);
  EXPECT_EQ(made.work_dir, "/home/alice");
  EXPECT_EQ(made.body->env.list(), (std::vector<std::string>{"A=1", "B=3"}));
  EXPECT_EQ(made.body->args, (std::vector<std::string>{"hostname"}));
  EXPECT_EQ(made.step->hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(made.step->attempt, 1u);
  EXPECT_EQ(made.step->array_id, 1u);
  EXPECT_EQ(made.step->array_index, 7u);
}

TEST(Steps, AreRefusedWithAReason) {
  TwoHosts c;
  EXPECT_EQ(c.says(bob(), a_step(1)), "PERM: ");
  EXPECT_EQ(c.message(),
            "job 1 belongs to alice: only its owner or an administrator may run a command in it");
  EXPECT_EQ(c.says(alice(), a_step(9)), "NOENT: ");
  EXPECT_EQ(c.message(), "there is no job 9: a command runs in a job that runs");
  EXPECT_EQ(c.says(alice(), a_step(1, {"n3"})), "INVALID: ");
  EXPECT_EQ(c.message(), "job 1 does not run on host 'n3': it has n1, n2");
  EXPECT_EQ(c.says(alice(), a_step(1, {}, {})), "INVALID: ");
  c.run(alice(), a_job());
  EXPECT_EQ(c.says(alice(), a_step(2)), "INVALID: ");
  EXPECT_EQ(c.message(), "job 2 is PENDING: a command can run in it only while it is RUNNING");
  c.run(alice(), a_step(1));
  EXPECT_EQ(c.says(alice(), a_step(3)), "INVALID: ");
  EXPECT_EQ(c.message(), "job 3 is itself a command inside job 1: name that one");
  EXPECT_EQ(c.control(alice(), JobAction::kRequeue, {3}), "INVALID: ");
  c.run(controller(), HostLost{"n2"});
  EXPECT_EQ(c.says(alice(), a_step(1, {"*"})), "BUSY: ");
  EXPECT_EQ(c.message(), "host n2 of job 1 does not answer now: try again later");
  c.control(alice(), JobAction::kKill, {1});
  EXPECT_EQ(c.says(alice(), a_step(1)), "INVALID: ");
  EXPECT_EQ(c.message(), "job 1 is being killed: a command can run in it only while it is RUNNING");
}

TEST(Steps, ASubmissionMadeTwiceIsOneAlsoWhenTheJobHasEnded) {
  TwoHosts c;
  JobSpec step = a_step(1);
  step.submit_key = "k";
  step.body_hash = 5;
  EXPECT_EQ(c.says(alice(), step), "ok: job 2 STARTING @n1");
  c.reports("n1", NotifyKind::kFinish, 2);
  c.reports("n1", NotifyKind::kFinish, 1);
  for (const Identity& who : {alice(), root()}) {
    EXPECT_EQ(c.says(who, step), "DUP: ");
    EXPECT_EQ(c.applied.results[0].job, 2u);
    EXPECT_TRUE(c.applied.results[0].existing);
  }
  EXPECT_EQ(c.says(bob(), step), "PERM: ");
}

TEST(Steps, EndWithTheirJob) {
  TwoHosts c;
  c.run(alice(), a_step(1, {"*"}));
  c.reports("n2", NotifyKind::kStart, 3);
  EXPECT_EQ(c.reports("n1", NotifyKind::kFinish, 1),
            "ok: host n1 UP 0/4, host n2 UP 0/4, job 1 COMPLETED, job 2 STARTING to-kill @n1, "
            "job 3 RUNNING to-kill @n2, outbox n1 2");
  EXPECT_EQ(c.job(3).kill_signal, kSigkill);
  EXPECT_EQ(c.control(root(), JobAction::kKill, {1}), "ok: ");
  HostControl remove{HostAction::kRemove, "n2", ""};
  EXPECT_EQ(c.says(root(), remove), "BUSY: ");
  EXPECT_EQ(c.reports("n2", NotifyKind::kFinish, 3, JobState::kKilled),
            "ok: job 3 KILLED, outbox n2 2");
  EXPECT_EQ(c.job(3).reason, "ended with its job 1");
  EXPECT_EQ(c.says(root(), remove), "ok: host n2 gone");
}

TEST(Steps, FollowWhatIsDoneToTheirJob) {
  TwoHosts c;
  c.run(alice(), a_step(1));
  EXPECT_EQ(c.control(alice(), JobAction::kSuspend, {1}),
            "ok: job 1 RUNNING to-suspend @n1 @n2, job 2 STARTING to-suspend @n1");
  EXPECT_EQ(c.control(alice(), JobAction::kResume, {1}),
            "ok: job 1 RUNNING @n1 @n2, job 2 STARTING @n1");
  // A signal is for the job's own processes.
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}, 10), "ok: job 1 RUNNING to-kill @n1 @n2");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}),
            "ok: job 1 RUNNING to-kill @n1 @n2, job 2 STARTING to-kill @n1");
  EXPECT_EQ(c.job(2).kill_signal, 0u);
}

TEST(Steps, HaveWhatIsLeftOfTheTimeLimit) {
  JobSpec spec = a_job();
  spec.time_limit_s = 100;
  TwoHosts c(spec);
  c.time_ms += 30000;
  c.run(alice(), a_step(1));
  EXPECT_EQ(c.job(2).spec.time_limit_s, 70u);
  JobSpec shorter = a_step(1);
  shorter.time_limit_s = 5;
  c.run(alice(), shorter);
  EXPECT_EQ(c.job(3).spec.time_limit_s, 5u);
  JobControl more;
  more.ids = {1};
  more.action = JobAction::kModify;
  more.modify_mask = 2;
  more.modify.time_limit_s = 200;
  EXPECT_EQ(c.says(root(), more),
            "ok: job 1 RUNNING @n1 @n2, job 2 STARTING @n1, job 3 STARTING @n1");
  EXPECT_EQ(c.job(2).spec.time_limit_s, 170u);
}

// Two attempts of a job never run at once, not even a part of one.
TEST(Steps, AJobWaitsForThemBeforeItRunsAgain) {
  TwoHosts c;
  c.run(alice(), a_step(1, {"n2"}));
  c.control(alice(), JobAction::kRequeue, {1});
  EXPECT_EQ(c.reports("n1", NotifyKind::kFinish, 1, JobState::kKilled),
            "ok: host n1 UP 0/4, host n2 UP 0/4, job 1 HELD, job 2 STARTING to-kill @n2, "
            "outbox n1 2");
  EXPECT_EQ(c.job(1).reason,
            "waits until what its last attempt started in it (xce run --job) has ended");
  EXPECT_EQ(c.control(alice(), JobAction::kRelease, {1}), "INVALID: ");
  EXPECT_EQ(c.reports("n2", NotifyKind::kFail, 2, JobState::kKilled),
            "ok: job 1 PENDING, job 2 KILLED, outbox n2 1");
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1", "n2"})),
            "ok: host n1 UP 1/4, host n2 UP 1/4, job 1 STARTING @n1 @n2");
}

TEST(Steps, OfALostHostAreLostAndNotStartedAgain) {
  JobSpec spec = a_job();
  spec.requeue = true;
  Cluster c;
  c.lease_ms = 1000;
  c.join_scheduler("s", 1);
  c.join_host("n1", 4, 1000, 1, {}, 7);
  c.join_host("n2", 4, 1000, 1, {}, 8);
  spec.nodes = 2;
  c.run(alice(), spec);
  c.dispatch(c.plan(1, {"n1", "n2"}));
  c.notify("n1", {c.report("n1", NotifyKind::kStart, 1)});
  c.run(alice(), a_step(1, {"n2"}));
  EXPECT_TRUE(c.job(2).spec.requeue);  // it has a lease, as its job
  c.run(controller(), HostLost{"n2"});
  EXPECT_EQ(c.says(controller(), HostControl{HostAction::kGiveUp, "n2", ""}),
            "ok: host n2 GONE 1/4, job 2 LOST");
  EXPECT_EQ(c.job(1).state, JobState::kRunning);
}

TEST(Steps, KilledWithTheirJobOnAHostThatIsAway) {
  TwoHosts c;
  c.run(alice(), a_step(1));
  c.run(controller(), HostLost{"n1"});
  c.run(controller(), HostLost{"n2"});
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}),
            "ok: host n1 UNREACHABLE 0/4, host n2 UNREACHABLE 0/4, job 1 KILLED, job 2 KILLED");
}

TEST(Steps, OneThatItsHostCannotStartFails) {
  TwoHosts c;
  c.run(alice(), a_step(1));
  Report r = c.report("n1", NotifyKind::kFail, 2);
  r.outcome = JobState::kPending;
  r.message = "host n1 could not start it: disk full";
  EXPECT_EQ(c.notify("n1", {r}), "ok: job 2 FAILED, outbox n1 2");
  EXPECT_EQ(c.job(2).reason, "host n1 could not start it: disk full");
}

TEST(Steps, AreKeptOutOfExclusiveCounts) {
  JobSpec spec = a_job();
  spec.exclusive = true;
  TwoHosts c(spec);
  EXPECT_EQ(c.says(alice(), a_step(1, {"*"})), "ok: job 2 STARTING @n1, job 3 STARTING @n2");
  EXPECT_EQ(c.state.check_invariants(), std::vector<std::string>{});
}

}  // namespace
}  // namespace xce::state
