// A job's life, from submission to its end, and what people may do to it on the way.
#include "controller/state/state_testutil.h"
#include "controller/state/submit_keys.h"
#include "controller/state/tables.h"

namespace xce::state {
namespace {

TEST(Life, FromSubmissionToCompletion) {
  Cluster c;
  EXPECT_EQ(c.join_scheduler("s1", 1), "ok epoch 1: scheduler s1 1");
  EXPECT_EQ(c.join_host("n1", 4), "ok: host n1 UP 0/4");
  EXPECT_EQ(c.says(alice(), a_job()), "ok: job 1 PENDING");
  EXPECT_EQ(c.state.stats().pending, 1u);
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kStart, 1)}),
            "ok: job 1 RUNNING @n1, outbox n1 1");
  c.time_ms += 5000;
  Report finish = c.report("n1", NotifyKind::kFinish, 1);
  finish.exit_code = 0;
  finish.usage.cpu_ms = 4200;
  EXPECT_EQ(c.notify("n1", {finish}), "ok: host n1 UP 0/4, job 1 COMPLETED, outbox n1 2");
  EXPECT_EQ(c.job(1).spec.user, "alice");
  EXPECT_EQ(c.job(1).spec.queue, "default");
  EXPECT_EQ(c.job(1).spec.name, "true");
  EXPECT_EQ(c.job(1).starts, 1u);
  EXPECT_EQ(c.job(1).end_ms - c.job(1).start_ms, 5000);
  EXPECT_EQ(c.job(1).modify_index, c.index);
  EXPECT_EQ(c.state.stats().finished, 1u);
  ASSERT_EQ(c.state.users().size(), 1u);
  EXPECT_EQ(c.state.users()[0].cpu_ms, 4200u);
}

TEST(Life, ManyChangesInOneEntryAreToldOnce) {
  Cluster c;
  c.join_scheduler("s1", 1);
  c.join_host("n1", 4);
  Command submit, dispatch, kill;
  submit.who = alice();
  submit.op = a_job();
  dispatch.who = a_daemon(Role::kScheduler, "s1");
  dispatch.op = Dispatches{1, {c.plan(1, {"n1"})}};
  kill.who = alice();
  kill.op = JobControl{{1}, JobAction::kKill};
  c.apply({submit, dispatch, kill});
  EXPECT_EQ(tell(c.applied.events), "host n1 UP 1/4, job 1 STARTING to-kill @n1");
}

TEST(Submit, OwnerIsTheIdentityNotTheClaim) {
  Cluster c;
  JobSpec spec = a_job();
  spec.user = "bob";
  spec.uid = 0;
  const JobId mine = c.run(alice(), spec).job;
  EXPECT_EQ(c.job(mine).spec.user, "alice");
  EXPECT_EQ(c.job(mine).spec.uid, 1001u);
  spec.uid = 1002;
  const JobId by_root = c.run(root(), spec).job;
  EXPECT_EQ(c.job(by_root).spec.user, "bob");
  const JobId by_api = c.run(a_daemon(Role::kApiserver, "api"), spec).job;
  EXPECT_EQ(c.job(by_api).spec.user, "bob");
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n1"), spec), "PERM: ");
  EXPECT_EQ(c.says(a_daemon(Role::kApiserver, "api"), a_job()), "INVALID: ");  // for whom?
}

TEST(Submit, RefusalsSayWhatToDo) {
  Cluster c;
  JobSpec none = a_job({});
  EXPECT_EQ(c.says(alice(), none), "INVALID: ");
  EXPECT_EQ(c.message(), "there is nothing to run: give a script or a command");
  JobSpec no_body;
  EXPECT_EQ(c.says(alice(), no_body), "INVALID: ");
  JobSpec no_cpu = a_job();
  no_cpu.cpus = 0;
  EXPECT_EQ(c.says(alice(), no_cpu), "INVALID: ");
  EXPECT_EQ(c.message(), "a job needs at least one CPU: ask for cpus >= 1");
  JobSpec queue = a_job();
  queue.queue = "night";
  EXPECT_EQ(c.says(alice(), queue), "NOENT: ");
  EXPECT_EQ(c.message(), "there is no queue 'night': list the queues and name one of them");
  JobSpec twice = a_job();
  twice.array = {3, 1, 3};
  EXPECT_EQ(c.says(alice(), twice), "INVALID: ");
  EXPECT_EQ(c.message(), "array index 3 appears twice: give each index once");
  JobSpec huge = a_job();
  for (uint32_t i = 0; i <= 100000; ++i) huge.array.push_back(i);
  EXPECT_EQ(c.says(alice(), huge), "INVALID: ");
  JobSpec after = a_job();
  after.dependencies = {{DependencyKind::kAfterOk, 1}};
  EXPECT_EQ(c.says(alice(), after), "INVALID: ");
  EXPECT_EQ(c.message(), "the dependency afterok:1 names a job that never existed: check the id");
  JobSpec text = a_job();
  text.comment = std::string(5000, 'x');
  EXPECT_EQ(c.says(alice(), text), "INVALID: ");
  EXPECT_EQ(c.state.stats().pending, 0u);
  EXPECT_EQ(c.run(alice(), a_job()).job, 1u);  // refusals cost no ids
  EXPECT_EQ(c.says(alice(), after), "ok: job 2 PENDING");
  EXPECT_EQ(c.job(2).eligible_ms, 0);  // not before its dependency
}

TEST(Submit, ArrayIsOneJobAnIndexWithOneBody) {
  Cluster c;
  c.run(alice(), a_job());
  JobSpec spec = a_job({"./work"});
  spec.array = {2, 4, 9};
  const Result result = c.run(alice(), spec);
  EXPECT_EQ(result.job, 2u);
  EXPECT_EQ(result.count, 3u);
  EXPECT_EQ(tell(c.applied.events), "job 2 PENDING, job 3 PENDING, job 4 PENDING");
  EXPECT_EQ(c.job(4).array_id, 2u);
  EXPECT_EQ(c.job(4).array_index, 9u);
  EXPECT_TRUE(c.job(4).spec.array.empty());
  EXPECT_EQ(c.job(2).spec.body, c.job(4).spec.body);
}

TEST(Submit, KeyMakesItOneSubmission) {
  Cluster c;
  JobSpec spec = a_job();
  spec.submit_key = "nightly";
  spec.body_hash = 7;
  EXPECT_EQ(c.says(alice(), spec), "ok: job 1 PENDING");
  Result again = c.run(alice(), spec);
  EXPECT_EQ(words(again.status), "DUP");
  EXPECT_EQ(again.job, 1u);
  EXPECT_EQ(again.count, 1u);
  EXPECT_TRUE(again.existing);
  EXPECT_EQ(again.message, "this submission was made before, with the same key: it is job 1");
  spec.body_hash = 8;
  Result other = c.run(alice(), spec);
  EXPECT_EQ(words(other.status), "DUP");
  EXPECT_FALSE(other.existing);
  EXPECT_EQ(other.message,
            "the submit key 'nightly' belongs to job 1, which is another submission: choose "
            "another key, or none");
  EXPECT_EQ(c.says(bob(), spec), "ok: job 2 PENDING");  // keys are each user's own
  // A replay is recognised also when it would be refused today.
  c.run(root(), QueueControl{QueueAction::kClose, c.state.queues().at("default")});
  spec.body_hash = 7;
  EXPECT_EQ(words(c.run(alice(), spec).status), "DUP");
}

TEST(Submit, KeyOutlivesTheJobForAnHour) {
  Cluster c;
  JobSpec spec = a_job();
  spec.submit_key = "k";
  c.run(alice(), spec);
  c.control(alice(), JobAction::kKill, {1});
  c.time_ms += 1000;
  JobSpec many = a_job();
  for (uint32_t i = 0; i < kMaxEndedJobs; ++i) many.array.push_back(i);
  c.run(alice(), many);
  EXPECT_NE(c.state.job(1), nullptr);
  c.control(alice(), JobAction::kKill, {2}, 0, /*whole_array=*/true);
  EXPECT_EQ(c.state.job(1), nullptr);  // the one that ended first had to go
  EXPECT_EQ(std::visit(Tell{}, c.applied.events[0]), "job 1 gone");
  EXPECT_EQ(words(c.run(alice(), spec).status), "DUP");
  c.time_ms += 3600 * 1000;
  c.run(controller(), Tick{});
  EXPECT_EQ(c.run(alice(), spec).job, 2 + kMaxEndedJobs);
  // Ids are never given twice, and a dependency on a job that is gone is one on a job that existed.
  spec = a_job();
  spec.dependencies = {{DependencyKind::kAfterAny, 1}};
  EXPECT_EQ(c.says(alice(), spec), "ok: job 10003 PENDING");
}

TEST(Departure, TheOldestEndsLeaveWhole) {
  Cluster c;
  c.running();  // job 1
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, 1)});
  const Job before = c.job(1);
  EXPECT_TRUE(c.applied.departed.empty());
  JobSpec many = a_job();
  for (uint32_t i = 0; i < kMaxEndedJobs; ++i) many.array.push_back(i);
  c.run(alice(), many);
  c.control(alice(), JobAction::kKill, {2}, 0, /*whole_array=*/true);
  ASSERT_EQ(c.applied.departed.size(), 1u);
  const Job& gone = c.applied.departed[0];
  EXPECT_EQ(gone.id, 1u);
  EXPECT_EQ(gone.state, JobState::kCompleted);
  EXPECT_EQ(gone.end_ms, before.end_ms);
  EXPECT_EQ(gone.allocs, before.allocs);
  EXPECT_EQ(gone.spec.body, before.spec.body);
  EXPECT_EQ(c.state.job(1), nullptr);
  EXPECT_EQ(c.state.stats().finished, 1 + kMaxEndedJobs);
  JobFilter on_host;
  on_host.host = "n1";
  EXPECT_EQ(c.state.jobs(on_host, 10).jobs.size(), 0u);
}

TEST(Departure, MoreThanAnEntryMayTakeLeaveWithTheNext) {
  Cluster c;
  JobSpec many = a_job();
  for (uint32_t i = 0; i < kMaxEndedJobs + 2 * kMaxDepartures; ++i) many.array.push_back(i);
  c.run(alice(), many);
  c.control(alice(), JobAction::kKill, {1}, 0, /*whole_array=*/true);
  EXPECT_EQ(c.applied.departed.size(), kMaxDepartures);
  c.apply({});
  EXPECT_EQ(c.applied.departed.size(), kMaxDepartures);
  EXPECT_EQ(c.applied.departed.front().id, kMaxDepartures + 1);
  c.apply({});
  EXPECT_TRUE(c.applied.departed.empty());
}

TEST(Departure, ALateEndIsToldBeforeItLeaves) {
  Cluster c;
  c.running();  // job 1
  JobSpec many = a_job();
  for (uint32_t i = 0; i < kMaxEndedJobs; ++i) many.array.push_back(i);
  c.run(alice(), many);
  c.time_ms += 1000;
  c.control(alice(), JobAction::kKill, {2}, 0, /*whole_array=*/true);
  Report late = c.report("n1", NotifyKind::kFinish, 1);
  late.time_ms = c.time_ms - 500;  // before all the others
  c.notify("n1", {late});
  ASSERT_EQ(c.applied.departed.size(), 1u);
  EXPECT_EQ(c.applied.departed[0].id, 2u);
  EXPECT_EQ(c.job(1).state, JobState::kCompleted);
}

TEST(Departure, ControlOfOneThatLeft) {
  Cluster c;
  JobSpec many = a_job();
  for (uint32_t i = 0; i <= kMaxEndedJobs; ++i) many.array.push_back(i);
  c.run(alice(), many);
  c.control(alice(), JobAction::kKill, {1}, 0, /*whole_array=*/true);
  ASSERT_EQ(c.state.job(1), nullptr);
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}), "ok: ");
  EXPECT_EQ(c.message(), "job 1 ended long ago");
  EXPECT_EQ(c.control(alice(), JobAction::kRequeue, {1}), "NOENT: ");
  EXPECT_EQ(c.message(),
            "job 1 ended long ago and is history: 'xce history 1' shows it; submit it anew");
}

TEST(Submit, KeyOfAnArrayLivesUntilItsLastTaskIsGone) {
  SubmitKeys keys;
  JobSpec spec = a_job();
  spec.user = "alice";
  spec.submit_key = "k";
  keys.add(spec, 5, 2);
  keys.job_removed(spec, 1000);
  keys.expire(1000 + 2 * kKeyKeepMs);
  ASSERT_NE(keys.find("alice", "k"), nullptr);
  keys.job_removed(spec, 1000 + 2 * kKeyKeepMs);
  keys.expire(1000 + 3 * kKeyKeepMs - 1);
  EXPECT_NE(keys.find("alice", "k"), nullptr);
  keys.expire(1000 + 3 * kKeyKeepMs);
  EXPECT_EQ(keys.find("alice", "k"), nullptr);
}

TEST(Control, OnlyOnesOwnJobsUnlessAdministrator) {
  Cluster c;
  c.run(alice(), a_job());
  EXPECT_EQ(c.control(bob(), JobAction::kKill, {1}), "PERM: ");
  EXPECT_EQ(c.message(),
            "job 1 belongs to alice: only its owner or an administrator may control it");
  EXPECT_EQ(c.control(a_user("root", 7), JobAction::kKill, {1}), "PERM: ");
  EXPECT_EQ(c.control(a_user("bob", 0), JobAction::kKill, {1}), "PERM: ");
  EXPECT_EQ(c.control(a_daemon(Role::kWorker, "alice"), JobAction::kKill, {1}), "PERM: ");
  EXPECT_EQ(c.control(root(), JobAction::kHold, {1}), "ok: job 1 HELD");
  EXPECT_EQ(c.job(1).reason, "held by root");
  EXPECT_EQ(c.control(alice(), JobAction::kRelease, {1}), "ok: job 1 PENDING");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}), "ok: job 1 KILLED");
  EXPECT_EQ(c.job(1).reason, "killed by alice before it started");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}), "ok: ");
  EXPECT_EQ(c.message(), "job 1 has ended already (KILLED)");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {99}), "NOENT: ");
  EXPECT_EQ(c.message(), "there is no job 99");
}

TEST(Control, RunningJobIsKilledByItsWorker) {
  Cluster c;
  const JobId id = c.running();
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {id}), "ok: job 1 RUNNING to-kill @n1");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {id}), "ok: ");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {id}, 9), "ok: job 1 RUNNING to-kill @n1");
  EXPECT_EQ(c.job(id).kill_signal, 9u);
  EXPECT_EQ(c.control(alice(), JobAction::kSuspend, {id}), "INVALID: ");
  Report end = c.report("n1", NotifyKind::kFinish, id);
  end.outcome = JobState::kKilled;
  end.exit_signal = 9;
  end.exit_code = 137;
  EXPECT_EQ(c.notify("n1", {end}), "ok: host n1 UP 0/4, job 1 KILLED, outbox n1 2");
  EXPECT_EQ(c.job(id).exit_code, 137);
}

TEST(Control, SuspendAndResume) {
  Cluster c;
  const JobId id = c.running();
  EXPECT_EQ(c.control(alice(), JobAction::kHold, {id}), "INVALID: ");
  EXPECT_EQ(c.message(), "job 1 is RUNNING: it has started; suspend it instead");
  EXPECT_EQ(c.control(alice(), JobAction::kSuspend, {id}), "ok: job 1 RUNNING to-suspend @n1");
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kStop, id)}),
            "ok: job 1 SUSPENDED to-suspend @n1, outbox n1 2");
  EXPECT_EQ(c.control(alice(), JobAction::kResume, {id}), "ok: job 1 SUSPENDED @n1");
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kResumed, id)}),
            "ok: job 1 RUNNING @n1, outbox n1 3");
  EXPECT_EQ(c.control(alice(), JobAction::kResume, {id}), "ok: ");
}

TEST(Control, RequeueKillsFirstAndThenWaitsAgain) {
  Cluster c;
  const JobId id = c.running();
  EXPECT_EQ(c.control(alice(), JobAction::kRequeue, {id}), "ok: job 1 RUNNING to-kill @n1");
  Report end = c.report("n1", NotifyKind::kFinish, id);
  end.outcome = JobState::kKilled;
  EXPECT_EQ(c.notify("n1", {end}), "ok: host n1 UP 0/4, job 1 PENDING, outbox n1 2");
  EXPECT_EQ(c.control(alice(), JobAction::kRequeue, {id}), "INVALID: ");
  EXPECT_EQ(c.dispatch(c.plan(id, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
  EXPECT_EQ(c.job(id).attempt, 2u);
  c.control(alice(), JobAction::kRequeue, {id});
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {id}),
            "ok: job 1 STARTING to-kill @n1");  // for good
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kFail, id)}),
            "ok: host n1 UP 0/4, job 1 FAILED, outbox n1 3");
  EXPECT_EQ(c.control(alice(), JobAction::kRequeue, {id}), "ok: job 1 PENDING");
}

TEST(Control, ModifyIsAllOrNothing) {
  Cluster c;
  Queue night;
  night.name = "night";
  night.max_time_s = 100;
  c.run(root(), QueueControl{QueueAction::kCreate, night});
  c.run(alice(), a_job());
  JobControl modify;
  modify.ids = {1};
  modify.action = JobAction::kModify;
  modify.modify_mask = 1 | 2 | 4 | 8;
  modify.modify.priority = 5;
  modify.modify.time_limit_s = 200;
  modify.modify.name = "sim";
  modify.modify.queue = "night";
  EXPECT_EQ(c.says(alice(), modify), "INVALID: ");
  EXPECT_EQ(c.message(),
            "queue 'night' allows 100 s and job 1 would ask for 200 s: ask for less time");
  EXPECT_EQ(c.job(1).spec.priority, 0);
  modify.modify.time_limit_s = 50;
  EXPECT_EQ(c.says(alice(), modify), "ok: job 1 PENDING");
  EXPECT_EQ(c.job(1).spec.name, "sim");
  EXPECT_EQ(c.state.queues().at("night").pending, 1u);
  EXPECT_EQ(c.state.queues().at("default").pending, 0u);
  modify.modify_mask = 16;
  EXPECT_EQ(c.says(alice(), modify), "INVALID: ");
}

TEST(Control, RunningJobMayGetLessTimeAndMoreOnlyFromRoot) {
  Cluster c;
  JobSpec spec = a_job();
  spec.time_limit_s = 100;
  const JobId id = c.running(spec);
  JobControl modify;
  modify.ids = {id};
  modify.action = JobAction::kModify;
  modify.modify_mask = 2;
  modify.modify.time_limit_s = 50;
  EXPECT_EQ(words(c.run(alice(), modify).status), "ok");
  modify.modify.time_limit_s = 60;
  EXPECT_EQ(words(c.run(alice(), modify).status), "PERM");
  EXPECT_EQ(words(c.run(root(), modify).status), "ok");
}

TEST(Control, WholeArrayAndMixedVerdicts) {
  Cluster c;
  JobSpec spec = a_job();
  spec.array = {1, 2, 3};
  c.run(alice(), spec);
  c.run(bob(), a_job());
  EXPECT_EQ(c.control(alice(), JobAction::kHold, {2}), "ok: job 2 HELD");
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1}), "ok: job 1 KILLED");
  // The array is meant even by the id of a task that has ended; bob's job is refused, the rest is
  // done.
  EXPECT_EQ(c.control(alice(), JobAction::kKill, {1, 4}, 0, true),
            "ok: job 2 KILLED, job 3 KILLED");
  EXPECT_EQ(c.applied.results[0].count, 2u);
  EXPECT_EQ(c.message(),
            "job 1[1] has ended already (KILLED); job 4 belongs to bob: only its owner or an "
            "administrator may control it");
}

TEST(Submit, TheGroupIsTheOneInTheSubmission) {
  Cluster c;
  JobSpec spec = a_job();
  spec.uid = 5;
  spec.gid = 77;  // the service has put the connection's group here
  Identity who = alice();
  who.gid = 0;  // a command read from the log has none
  c.run(who, spec);
  EXPECT_EQ(c.job(1).spec.uid, alice().uid);
  EXPECT_EQ(c.job(1).spec.gid, 77u);
}

}  // namespace
}  // namespace xce::state
