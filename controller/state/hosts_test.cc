// Hosts, what their workers report, and queues.
#include "controller/state/state_testutil.h"

namespace xce::state {
namespace {

TEST(Host, JoinsUnderItsOwnNameOnly) {
  Cluster c;
  Join join;
  join.role = Role::kWorker;
  join.host.name = "n2";
  join.host.cpus = 1;
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n1"), join), "PERM: ");
  EXPECT_EQ(c.says(alice(), join), "PERM: ");
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n2"), join), "ok: host n2 UP 0/1");
  join.host.cpus = 0;
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n2"), join), "INVALID: ");
}

TEST(Host, DrainsAndIsRemovedWhenEmpty) {
  Cluster c;
  const JobId id = c.running();
  EXPECT_EQ(c.says(alice(), HostControl{HostAction::kDrain, "n1", ""}), "PERM: ");
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kDrain, "n1", "disk"}),
            "ok: host n1 DRAINED 1/4");
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1"})), "STALE: ");
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kRemove, "n1", ""}), "BUSY: ");
  EXPECT_EQ(c.join_host("n1", 4),
            "ok: host n1 DRAINED 1/4");  // the wish outlives a restart of the worker
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, id)});
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kResume, "n1", ""}), "ok: host n1 UP 0/4");
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kRemove, "n1", ""}), "ok: host n1 gone");
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kRemove, "n1", ""}), "NOENT: ");
  // Back again, it goes on numbering its reports: two were applied.
  EXPECT_EQ(c.state.outbox_applied("n1"), 2u);
  c.join_host("n1", 4);
  EXPECT_EQ(c.applied.results[0].outbox_applied, 2u);
}

TEST(Host, LostKeepsItsJobsAndComesBack) {
  Cluster c;
  const JobId id = c.running();
  EXPECT_EQ(c.says(root(), HostLost{"n1"}), "PERM: ");
  EXPECT_EQ(c.says(controller(), HostLost{"n1"}), "ok: host n1 UNREACHABLE 1/4, job 1 RUNNING @n1");
  EXPECT_EQ(c.job(id).reason, "host n1 is unreachable: waiting for news of the job");
  EXPECT_EQ(c.says(controller(), HostLost{"n1"}), "ok: ");
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(2, {"n1"})), "STALE: ");
  EXPECT_EQ(c.join_host("n1", 4, 1000, 2), "ok: host n1 UP 1/4, job 1 RUNNING @n1");
  EXPECT_EQ(c.job(id).reason, "");
  c.run(controller(), HostLost{"n1"});
  EXPECT_EQ(c.notify("n1", {}, 2),
            "ok: host n1 UP 1/4, job 1 RUNNING @n1, outbox n1 1");  // was only paused
}

TEST(Host, KillEndsTheJobsOfAHostThatIsGone) {
  Cluster c;
  const JobId id = c.running();
  c.run(controller(), HostLost{"n1"});
  c.control(alice(), JobAction::kKill, {id}, 10);  // a signal needs somebody to send it
  EXPECT_EQ(c.job(id).state, JobState::kRunning);
  c.control(alice(), JobAction::kKill, {id});
  EXPECT_EQ(c.job(id).state, JobState::kKilled);
  EXPECT_NE(c.job(id).reason.find("n1 was unreachable"), std::string::npos) << c.job(id).reason;
  EXPECT_EQ(c.state.hosts().at("n1").used_cpus, 0u);
  // What the host tells when it comes back changes nothing.
  c.join_host("n1", 4, 1000, 2);
  Report report;
  report.outbox_seq = 2;
  report.kind = NotifyKind::kFinish;
  report.job = id;
  report.attempt = 1;
  c.notify("n1", {report}, 2);
  EXPECT_EQ(c.job(id).state, JobState::kKilled);
  EXPECT_EQ(c.state.check_invariants().size(), 0u);
}

// A job that asks to be requeued, dispatched to a host n1 that gives leases.
JobId leased(Cluster& c) {
  JobSpec wish = a_job();
  wish.requeue = true;
  c.lease_ms = 5000;
  if (!c.state.scheduler().epoch) c.join_scheduler("s", 1);
  if (!c.state.hosts().count("n1")) c.join_host("n1", 4, 1000, 1, {}, 7);
  const JobId id = c.run(alice(), wish).job;
  c.dispatch(c.plan(id, {"n1"}));
  return id;
}
const HostControl kGiveUp{HostAction::kGiveUp, "n1", ""};

TEST(Host, GoneWhenItsLeasesHaveRunOutGivesBackTheJobsThatAskForIt) {
  Cluster c;
  const JobId id = leased(c), other = c.running();
  EXPECT_EQ(c.says(root(), kGiveUp), "PERM: ") << "the primary's own";
  EXPECT_EQ(c.says(controller(), kGiveUp), "ok: ") << "it is not lost";
  c.run(controller(), HostLost{"n1"});
  EXPECT_EQ(c.says(controller(), kGiveUp), "ok: host n1 GONE 1/4, job 1 PENDING");
  EXPECT_EQ(c.job(id).reason, "requeued: host n1 was lost");
  EXPECT_EQ(c.job(other).state, JobState::kRunning) << "it did not ask: it waits for its host";
  EXPECT_EQ(c.says(controller(), kGiveUp), "ok: ") << "once";
  EXPECT_EQ(c.says(controller(), HostLost{"n1"}), "ok: ");
  // Elsewhere it is another attempt; what the lost host still says of the old one is of no effect.
  c.join_host("n2", 4);
  c.dispatch(c.plan(id, {"n2"}));
  EXPECT_EQ(c.job(id).attempt, 2u);
  EXPECT_EQ(c.join_host("n1", 4, 1000, 2, {}, 7), "ok: host n1 UP 1/4, job 2 RUNNING @n1");
  Report late = c.report("n1", NotifyKind::kFinish, id);
  late.attempt = 1;
  c.notify("n1", {late}, 2);
  EXPECT_EQ(c.job(id).state, JobState::kStarting);
}

TEST(Host, WithoutLeasesNothingIsRequeued) {
  Cluster c;
  const JobId id = leased(c);
  c.lease_ms = 0;
  c.join_host("n1", 4, 1000, 2, {}, 7);  // jobs that hold it may now run for ever
  c.lease_ms = 5000;
  c.join_host("n1", 4, 1000, 3, {}, 7);  // which cannot be taken back while they run
  EXPECT_EQ(c.state.hosts().at("n1").lease_ms, 0u);
  c.run(controller(), HostLost{"n1"});
  c.run(controller(), kGiveUp);
  EXPECT_EQ(c.job(id).state, JobState::kStarting);
}

TEST(Host, ALeaseThatWasGivenIsNotCountedShorter) {
  Cluster c;
  const JobId id = leased(c);
  c.lease_ms = 2000;
  c.join_host("n1", 4, 1000, 2, {}, 7);
  EXPECT_EQ(c.state.hosts().at("n1").lease_ms, 5000u);
  c.control(alice(), JobAction::kKill, {id});
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, id)}, 2);
  c.join_host("n1", 4, 1000, 3, {}, 7);
  EXPECT_EQ(c.state.hosts().at("n1").lease_ms, 2000u);
}

TEST(Host, AKilledJobOfAHostThatIsGoneIsNotRequeued) {
  Cluster c;
  const JobId id = leased(c);
  c.control(alice(), JobAction::kKill, {id});
  c.run(controller(), HostLost{"n1"});
  c.run(controller(), kGiveUp);
  EXPECT_EQ(c.job(id).state, JobState::kKilled);
}

TEST(Host, ALostOneIsRemovedWithItsJobs) {
  Cluster c;
  const JobId id = leased(c), other = c.running();
  const HostControl remove{HostAction::kRemoveLost, "n1", ""};
  EXPECT_EQ(c.says(alice(), remove), "PERM: ");
  EXPECT_EQ(c.says(root(), remove), "BUSY: ") << "it is up";
  c.run(controller(), HostLost{"n1"});
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kRemove, "n1", ""}), "BUSY: ");
  EXPECT_NE(c.message().find("--lost"), std::string::npos);
  c.run(root(), remove);
  EXPECT_EQ(c.job(other).state, JobState::kLost);
  EXPECT_EQ(c.job(id).state, JobState::kPending);
  EXPECT_EQ(c.state.hosts().count("n1"), 0u);
  EXPECT_EQ(c.says(root(), remove), "NOENT: ");
}

TEST(Host, ItsNameBelongsToTheWorkerThatJoinedFirst) {
  Cluster c;
  c.join_host("n1", 4, 1000, 1, {}, 7);
  EXPECT_EQ(c.join_host("n1", 4, 1000, 2, {}, 8), "PERM: ");
  EXPECT_NE(c.message().find("xce host remove n1'"), std::string::npos) << c.message();
  EXPECT_EQ(c.join_host("n1", 4, 1000, 2), "PERM: ") << "one without an id neither";
  EXPECT_EQ(c.join_host("n1", 4, 1000, 3, {}, 7), "ok: host n1 UP 0/4");
  c.running();
  c.run(controller(), HostLost{"n1"});
  EXPECT_EQ(c.join_host("n1", 4, 1000, 2, {}, 8), "PERM: ") << "silence frees no name";
  EXPECT_NE(c.message().find("xce host remove n1 --lost"), std::string::npos) << c.message();
  c.run(root(), HostControl{HostAction::kRemoveLost, "n1", ""});
  EXPECT_EQ(c.join_host("n1", 4, 1000, 2, {}, 8), "ok: host n1 UP 0/4");
}

TEST(Host, AFaultDrainsItUntilItsWorkerTakesItBack) {
  Cluster c;
  EXPECT_EQ(c.join_host("n1", 4, 1000, 1, {}, 7, "disk full"), "ok: host n1 DRAINED 0/4");
  EXPECT_EQ(c.state.hosts().at("n1").drain_reason, "disk full");
  c.join_scheduler("s", 1);
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "STALE: ");
  c.run(root(), HostControl{HostAction::kDrain, "n1", "new disk"});
  EXPECT_EQ(c.state.hosts().at("n1").drain_reason, "new disk");
  EXPECT_EQ(c.says(root(), HostControl{HostAction::kResume, "n1", ""}), "ok: host n1 DRAINED 0/4");
  EXPECT_EQ(c.state.hosts().at("n1").drain_reason, "disk full");
  EXPECT_EQ(c.join_host("n1", 4, 1000, 1, {}, 7), "ok: host n1 UP 0/4");
  EXPECT_EQ(c.state.hosts().at("n1").drain_reason, "");
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
}

TEST(Reports, AJobThatItsHostEndedForWantOfALeaseWaitsAgain) {
  Cluster c;
  const JobId id = leased(c);
  c.notify("n1", {c.report("n1", NotifyKind::kStart, id)});
  Report fenced = c.report("n1", NotifyKind::kFinish, id);
  fenced.outcome = JobState::kLost;
  fenced.message = "no lease";
  c.notify("n1", {fenced});
  EXPECT_EQ(c.job(id).state, JobState::kPending);
  EXPECT_EQ(c.job(id).reason, "requeued: no lease");
}

TEST(Reports, AJobThatIsLostAgainAndAgainIsGivenUp) {
  Cluster c;
  const JobId id = leased(c);
  for (int round = 1; c.job(id).state != JobState::kLost; ++round) {
    ASSERT_LE(round, 10);
    if (round > 1) c.dispatch(c.plan(id, {"n1"}));
    c.notify("n1", {c.report("n1", NotifyKind::kStart, id)});
    Report lost = c.report("n1", NotifyKind::kFinish, id);
    lost.outcome = JobState::kLost;
    c.notify("n1", {lost});
  }
  EXPECT_EQ(c.job(id).starts, 10u);
  EXPECT_NE(c.job(id).reason.find("10 times"), std::string::npos) << c.job(id).reason;
}

TEST(Reports, AJobGivenBackKeepsItsPlaceAndDoesNotCount) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 4);
  c.run(alice(), a_job());
  const int64_t eligible_ms = c.job(1).eligible_ms;
  c.time_ms += 5000;
  c.dispatch(c.plan(1, {"n1"}));
  Report back = c.report("n1", NotifyKind::kFail, 1);
  back.outcome = JobState::kPending;
  back.message = "host n1 cannot start jobs: disk full";
  EXPECT_EQ(c.notify("n1", {back}), "ok: host n1 UP 0/4, job 1 PENDING, outbox n1 1");
  EXPECT_EQ(c.job(1).reason, back.message);
  EXPECT_EQ(c.job(1).eligible_ms, eligible_ms);
  EXPECT_EQ(c.state.stats().finished, 0u);
  // One that is to be killed has come to its end.
  c.dispatch(c.plan(1, {"n1"}));
  c.control(alice(), JobAction::kKill, {1});
  back = c.report("n1", NotifyKind::kFail, 1);
  back.outcome = JobState::kPending;
  c.notify("n1", {back});
  EXPECT_EQ(c.job(1).state, JobState::kKilled);
}

TEST(Host, MayComeBackSmallerThanWhatItHolds) {
  Cluster c;
  c.running();
  c.running();
  EXPECT_EQ(c.join_host("n1", 1), "ok: host n1 UP 2/1");
  c.run(alice(), a_job());
  EXPECT_EQ(c.dispatch(c.plan(3, {"n1"})), "STALE: ");
  EXPECT_EQ(c.state.check_invariants().size(), 0u);
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, 1)});
  EXPECT_EQ(c.dispatch(c.plan(3, {"n1"})), "STALE: ");
  c.notify("n1", {c.report("n1", NotifyKind::kFinish, 2)});
  EXPECT_EQ(c.dispatch(c.plan(3, {"n1"})), "ok: host n1 UP 1/1, job 3 STARTING @n1");
}

TEST(Host, TellsItsResources) {
  Cluster c;
  c.join_host("n1", 4);
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n1"), UpdateResvals{{{"gpu", 2}}}),
            "ok: host n1 UP 0/4");
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n1"), UpdateResvals{{{"gpu", 2}}}), "ok: ");
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n1"), UpdateResvals{{{"gpu", 2}, {"gpu", 1}}}),
            "INVALID: ");
  EXPECT_EQ(c.says(alice(), UpdateResvals{{{"gpu", 2}}}), "PERM: ");
}

TEST(Reports, EachOnceInOrderWhateverArrives) {
  Cluster c;
  c.running();  // report 1
  Report stop = c.report("n1", NotifyKind::kStop, 1), resumed = stop, finish = stop;
  resumed.outbox_seq = 3;
  resumed.kind = NotifyKind::kResumed;
  finish.outbox_seq = 4;
  finish.kind = NotifyKind::kFinish;
  EXPECT_EQ(c.notify("n1", {resumed, finish}), "ok: outbox n1 1");  // a gap: resend from 2
  EXPECT_EQ(c.notify("n1", {stop, resumed}), "ok: job 1 RUNNING @n1, outbox n1 3");
  EXPECT_EQ(c.notify("n1", {stop, resumed}), "ok: outbox n1 3");
  EXPECT_EQ(c.notify("n1", {stop, resumed, finish}),
            "ok: host n1 UP 0/4, job 1 COMPLETED, outbox n1 4");
  EXPECT_EQ(c.applied.results[0].outbox_applied, 4u);
}

TEST(Reports, OfAnOldAttemptOrAnotherHostOrNobodyOnlyAdvance) {
  Cluster c;
  c.running();
  c.join_host("n2", 4);
  EXPECT_EQ(c.notify("n2", {c.report("n2", NotifyKind::kFinish, 1)}), "ok: outbox n2 1");
  Report old = c.report("n1", NotifyKind::kFinish, 1);
  old.attempt = 0;
  EXPECT_EQ(c.notify("n1", {old}), "ok: outbox n1 2");
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kFinish, 99)}), "ok: outbox n1 3");
  EXPECT_EQ(c.job(1).state, JobState::kRunning);
}

TEST(Reports, OnlyFromTheHostsNewestWorker) {
  Cluster c;
  EXPECT_EQ(c.notify("n1", {}), "NOENT: ");
  c.running();
  EXPECT_EQ(c.says(a_daemon(Role::kWorker, "n2"),
                   Notify{"n1", 1, {c.report("n1", NotifyKind::kFinish, 1)}}),
            "PERM: ");
  EXPECT_EQ(c.says(root(), Notify{"n1", 1, {c.report("n1", NotifyKind::kFinish, 1)}}), "PERM: ");
  EXPECT_EQ(c.notify("n1", {c.report("n1", NotifyKind::kFinish, 1)}, 77), "STALE: ");
  EXPECT_EQ(c.job(1).state, JobState::kRunning);
}

TEST(Reports, AStartThatNeverRanFails) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 4);
  c.run(alice(), a_job());
  c.dispatch(c.plan(1, {"n1"}));
  Report fail = c.report("n1", NotifyKind::kFail, 1);
  fail.outcome = JobState::kFailed;
  fail.message = "no such directory: /home/alice";
  fail.exit_code = 127;
  EXPECT_EQ(c.notify("n1", {fail}), "ok: host n1 UP 0/4, job 1 FAILED, outbox n1 1");
  EXPECT_EQ(c.job(1).reason, "no such directory: /home/alice");
  EXPECT_EQ(c.job(1).starts, 0u);
  EXPECT_EQ(c.job(1).start_ms, 0);
}

TEST(Reports, TimesStayBetweenDispatchAndNow) {
  Cluster c;
  c.running();
  c.time_ms += 60000;  // an outage: the report of an end 50 s ago comes late
  Report finish = c.report("n1", NotifyKind::kFinish, 1);
  finish.time_ms = c.time_ms - 50000;
  c.notify("n1", {finish});
  EXPECT_EQ(c.job(1).end_ms, c.time_ms - 50000);
  c.running();
  finish = c.report("n1", NotifyKind::kFinish, 2);
  finish.time_ms = 5;  // a clock that is wrong
  c.notify("n1", {finish});
  EXPECT_EQ(c.job(2).end_ms, c.job(2).start_ms);
}

TEST(Queues, AdministratorsChangeThem) {
  Cluster c;
  Queue night;
  night.name = "night";
  night.default_time_s = 60;
  night.max_time_s = 100;
  night.open = night.active = false;  // not for create: these have their own actions
  EXPECT_EQ(c.says(alice(), QueueControl{QueueAction::kCreate, night}), "PERM: ");
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kCreate, night}), "ok: queue night");
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kCreate, night}), "INVALID: ");
  JobSpec spec = a_job();
  spec.queue = "night";
  c.run(alice(), spec);
  EXPECT_EQ(c.job(1).spec.time_limit_s, 60u);
  spec.time_limit_s = 101;
  EXPECT_EQ(c.says(alice(), spec), "INVALID: ");
  EXPECT_EQ(c.message(),
            "queue 'night' allows 100 s, and the job asks for 101 s: ask for less time, or use "
            "another queue");
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kRemove, night}), "BUSY: ");
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kClose, night}), "ok: queue night closed");
  spec.time_limit_s = 0;
  EXPECT_EQ(c.says(alice(), spec), "INVALID: ");
  night.is_default = true;
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kUpdate, night}),
            "ok: queue default, queue night closed default");
  c.control(alice(), JobAction::kKill, {1});
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kRemove, night}), "INVALID: ");
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kRemove, c.state.queues().at("default")}),
            "ok: queue default gone");
  night.name = "a b";
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kCreate, night}), "INVALID: ");
}

TEST(Queues, StoppedOneStartsNothing) {
  Cluster c;
  c.join_scheduler("s", 1);
  c.join_host("n1", 4);
  c.run(alice(), a_job());
  EXPECT_EQ(c.says(root(), QueueControl{QueueAction::kStop, c.state.queues().at("default")}),
            "ok: queue default stopped default");
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "STALE: ");
  c.run(root(), QueueControl{QueueAction::kStart, c.state.queues().at("default")});
  EXPECT_EQ(c.dispatch(c.plan(1, {"n1"})), "ok: host n1 UP 1/4, job 1 STARTING @n1");
}

TEST(Queues, AMaskChangesOnlyWhatItNames) {
  Cluster c;
  Queue given;
  given.name = "default";
  given.priority = 7;
  given.allowed_users = {"bob"};
  given.preemptible = true;
  QueueControl control{QueueAction::kUpdate, given, 1 | 1024};
  EXPECT_EQ(c.says(root(), control), "ok: queue default default");
  const Queue& queue = c.state.queues().at("default");
  EXPECT_EQ(queue.priority, 7);
  EXPECT_TRUE(queue.preemptible);
  EXPECT_TRUE(queue.allowed_users.empty());
  control.mask = 4096;
  EXPECT_EQ(c.says(root(), control), "INVALID: ");
  given.priority = 1;
  control = {QueueAction::kUpdate, given, 2 | 4};
  control.queue.default_time_s = 60;
  control.queue.max_time_s = 50;
  EXPECT_EQ(c.says(root(), control), "INVALID: ");
  EXPECT_EQ(c.state.queues().at("default").default_time_s, 0u);  // refused as a whole
  control.mask = 2;  // beside the maximum that the queue has
  EXPECT_EQ(c.says(root(), control), "ok: queue default default");
  EXPECT_EQ(c.state.queues().at("default").priority, 7);
  control.mask = 0;  // an older client's: it knows the first six fields
  control.queue.preemptible = false;
  control.queue.max_time_s = 0;
  EXPECT_EQ(c.run(root(), control).status, 0);
  EXPECT_EQ(c.state.queues().at("default").priority, 1);
  EXPECT_TRUE(c.state.queues().at("default").preemptible);
}

TEST(Queues, AccessByUserAndByGroup) {
  Cluster c;
  Queue lab;
  lab.name = "lab";
  lab.allowed_users = {"bob"};
  lab.allowed_groups = {"physics", "staff"};
  c.run(root(), QueueControl{QueueAction::kCreate, lab});
  JobSpec spec = a_job();
  spec.queue = "lab";
  EXPECT_EQ(c.says(alice(), spec), "PERM: ");
  EXPECT_EQ(c.message(),
            "user alice may not use queue 'lab': use another queue, or ask an administrator");
  EXPECT_EQ(c.says(bob(), spec), "ok: job 1 PENDING");
  Identity of_physics = alice();
  of_physics.groups = {"users", "physics"};
  EXPECT_EQ(c.says(of_physics, spec), "ok: job 2 PENDING");
  EXPECT_EQ(c.says(root(), spec), "ok: job 3 PENDING");
  // The apiserver has no right of its own: it speaks for the user that it names.
  Identity api = a_daemon(Role::kApiserver, "api");
  spec.user = "carol";
  EXPECT_EQ(c.says(api, spec), "PERM: ");
  api.groups = {"staff"};
  EXPECT_EQ(c.says(api, spec), "ok: job 4 PENDING");
  // No way in through another queue.
  c.run(alice(), a_job());
  JobControl move;
  move.action = JobAction::kModify;
  move.ids = {5};
  move.modify.queue = "lab";
  move.modify_mask = 8;
  EXPECT_EQ(c.says(alice(), move), "PERM: ");
  EXPECT_EQ(c.says(of_physics, move), "ok: job 5 PENDING");
}

TEST(Queues, AUsersWaitingJobsAreLimited) {
  Cluster c;
  Queue given;
  given.name = "default";
  given.max_pending_per_user = 3;
  c.run(root(), QueueControl{QueueAction::kUpdate, given, 256});
  JobSpec array = a_job();
  array.array = {1, 2, 3, 4};
  EXPECT_EQ(c.says(alice(), array), "BUSY: ");
  array.array = {1, 2, 3};
  EXPECT_EQ(c.run(alice(), array).status, 0);
  EXPECT_EQ(c.says(alice(), a_job()), "BUSY: ");
  EXPECT_EQ(c.message(),
            "user alice has 3 waiting jobs in queue 'default', which takes at most 3 of a user: "
            "wait until some have started, or use another queue");
  EXPECT_EQ(c.run(bob(), a_job()).status, 0);
  c.control(alice(), JobAction::kKill, {2});
  EXPECT_EQ(c.run(alice(), a_job()).status, 0);
}

}  // namespace
}  // namespace xce::state
