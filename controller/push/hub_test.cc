#include "controller/push/hub.h"

#include <gtest/gtest.h>

namespace xce::push {
namespace {

std::vector<Event> job(JobId id, const std::string& host = "",
                       JobState state = JobState::kRunning) {
  Job job;
  job.id = id;
  job.state = host.empty() ? JobState::kPending : state;
  if (!host.empty()) job.allocs.push_back({host, 1, 0, {}});
  return {job};
}

std::vector<JobId> jobs_to(const Hub::Out& out, ConnId conn) {
  std::vector<JobId> ids;
  for (const Delivery& delivery : out.deliveries)
    for (ConnId to : delivery.to)
      if (to == conn)
        for (const Item& item : delivery.batch->items)
          if (const auto* event = std::get_if<EventPtr>(&item))
            if (const auto* job = std::get_if<Job>(event->get())) ids.push_back(job->id);
  return ids;
}

std::shared_ptr<Flow> flow() { return std::make_shared<Flow>(); }

TEST(Hub, EverySubscriberGetsTheSameBatch) {
  Hub hub;
  hub.join(1, Role::kScheduler, "", flow());
  hub.join(2, Role::kApiserver, "", flow());
  hub.add(1, job(1));
  hub.add(2, job(2));
  const auto out = hub.flush();
  ASSERT_EQ(out.deliveries.size(), 1u);
  EXPECT_EQ(out.deliveries[0].to.size(), 2u);
  EXPECT_EQ(out.deliveries[0].batch->revision, 2u);
  EXPECT_TRUE(hub.flush().deliveries.empty());
}

TEST(Hub, AWorkerHearsOfItsHostAlone) {
  Hub hub;
  hub.join(1, Role::kWorker, "h1", flow());
  hub.join(2, Role::kWorker, "h2", flow());
  hub.add(1, job(1, "h1"));
  hub.add(2, job(2));
  hub.add(3, {Event(OutboxApplied{"h2", 9})});
  const auto out = hub.flush();
  EXPECT_EQ(jobs_to(out, 1), std::vector<JobId>{1});
  EXPECT_TRUE(jobs_to(out, 2).empty());
  EXPECT_EQ(out.deliveries.size(), 2u);  // h2: its outbox
}

TEST(Hub, WhoWatchesJobsHearsOfThemAlone) {
  Hub hub;
  hub.watch(1, Role::kUser, flow(), {7, 9, 9});
  hub.watch(2, Role::kUser, flow(), {9});
  hub.join(3, Role::kWorker, "h1", flow());
  hub.add(1, job(7, "h1"));
  hub.add(2, job(8));
  hub.add(3, job(9));
  hub.add(4, {Event(Host{})});
  const auto out = hub.flush();
  EXPECT_EQ(jobs_to(out, 1), (std::vector<JobId>{7, 9}));
  EXPECT_EQ(jobs_to(out, 2), (std::vector<JobId>{9}));
  EXPECT_EQ(jobs_to(out, 3), (std::vector<JobId>{7}));
  hub.add(5, job(8));
  EXPECT_TRUE(hub.flush().deliveries.empty()) << "what nobody watches costs nobody anything";
  hub.add(6, {Event(JobRemoved{9})});
  EXPECT_EQ(hub.flush().deliveries.size(), 2u);
}

TEST(Hub, WatchingEndsWithTheConnectionOrTheNextSubscription) {
  Hub hub;
  hub.watch(1, Role::kUser, flow(), {7});
  hub.watch(2, Role::kUser, flow(), {7});
  hub.remove(2);
  hub.watch(1, Role::kUser, flow(), {8});
  hub.add(1, job(7));
  EXPECT_TRUE(hub.flush().deliveries.empty());
  hub.add(2, job(8));
  EXPECT_EQ(jobs_to(hub.flush(), 1), (std::vector<JobId>{8}));
  hub.end_all();
  EXPECT_EQ(hub.flush().finished, (std::vector<ConnId>{1}));
  hub.add(3, job(8));
  EXPECT_TRUE(hub.flush().deliveries.empty());
}

TEST(Hub, AWorkerHearsOfTheJobThatItLoses) {
  Hub hub;
  hub.join(1, Role::kWorker, "h1", flow());
  hub.add(1, job(1, "h1"));
  hub.add(2, job(1));  // requeued
  hub.add(3, job(1));
  EXPECT_EQ(jobs_to(hub.flush(), 1), (std::vector<JobId>{1, 1}));
}

TEST(Hub, ItemsForOneConsumerComeInOrderWithItsEvents) {
  HubOptions options;
  options.batch_events = 1;
  Hub hub(options);
  hub.join(1, Role::kScheduler, "", flow());
  hub.join(2, Role::kScheduler, "", flow());
  hub.add(1, job(1));
  hub.add(2, job(2));
  hub.add(3, job(3));
  hub.to_schedulers(Wakeup{});
  const auto out = hub.flush();
  EXPECT_EQ(jobs_to(out, 1), (std::vector<JobId>{1, 2, 3}));
  EXPECT_EQ(jobs_to(out, 2), (std::vector<JobId>{1, 2, 3}));
}

TEST(Hub, ALaggingConsumerCatchesUpInOrder) {
  HubOptions options;
  options.batch_events = 2;
  Hub hub(options);
  const auto slow = flow();
  hub.join(1, Role::kScheduler, "", slow);
  slow->bytes = options.high_water_bytes;
  for (Index i = 1; i <= 3; ++i) hub.add(i, job(i));
  EXPECT_TRUE(hub.flush().deliveries.empty());
  EXPECT_TRUE(slow->blocked.load());
  hub.join(2, Role::kScheduler, "", flow());
  slow->bytes = 0;
  for (Index i = 4; i <= 6; ++i) hub.add(i, job(i));
  const auto out = hub.flush();
  EXPECT_EQ(jobs_to(out, 1), (std::vector<JobId>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(jobs_to(out, 2), (std::vector<JobId>{4, 5, 6}));
}

TEST(Hub, WhoFallsOutOfTheRingIsDropped) {
  HubOptions options;
  options.ring_events = 1;
  options.lag_events = 2;
  Hub hub(options);
  const auto slow = flow();
  hub.join(1, Role::kScheduler, "", slow);
  slow->bytes = options.high_water_bytes;
  for (Index i = 1; i <= 3; ++i) hub.add(i, job(i));
  EXPECT_EQ(hub.flush().too_slow, std::vector<ConnId>{1});
  EXPECT_FALSE(hub.subscribed(1));
}

// Large events count for what they are: the ring is bounded in memory, too.
TEST(Hub, TheRingIsBoundedInBytes) {
  const auto large = [](JobId id) {
    std::vector<Event> events = job(id);
    std::get<Job>(events[0]).spec.comment = std::string(4000, 'c');
    return events;
  };
  HubOptions options;
  options.ring_bytes = 15000;  // three of them
  options.lag_bytes = 40000;   // eight
  Hub hub(options);
  for (Index i = 1; i <= 5; ++i) hub.add(i, large(i));
  const auto resumes = [&](ConnId conn, Index from) {
    hub.subscribe(conn, Role::kUser, "", flow(), from);
    return jobs_to(hub.flush(), conn).size();
  };
  EXPECT_EQ(resumes(1, 2), 3u);
  EXPECT_EQ(resumes(2, 1), 0u);  // that is gone
  hub.remove(2);
  const auto slow = flow();
  hub.join(3, Role::kScheduler, "", slow);
  slow->bytes = options.high_water_bytes;
  for (Index i = 6; i <= 13; ++i) hub.add(i, large(i));
  EXPECT_TRUE(hub.flush().too_slow.empty());
  for (Index i = 14; i <= 16; ++i) hub.add(i, large(i));
  EXPECT_EQ(hub.flush().too_slow, std::vector<ConnId>{3});
}

TEST(Hub, ABatchThatCutsAnEntryPromisesLess) {
  HubOptions options;
  options.batch_events = 2;
  Hub hub(options);
  hub.join(1, Role::kScheduler, "", flow());
  std::vector<Event> three = {job(1)[0], job(2)[0], job(3)[0]};
  hub.add(7, three);
  const auto out = hub.flush();
  ASSERT_EQ(out.deliveries.size(), 2u);
  EXPECT_EQ(out.deliveries[0].batch->revision, 6u);
  EXPECT_EQ(out.deliveries[1].batch->revision, 7u);
}

TEST(Hub, ResumesFromARevisionOrTellsOfTheGap) {
  HubOptions options;
  options.ring_events = 3;
  Hub hub(options);
  for (Index i = 1; i <= 5; ++i) hub.add(i, job(i));
  hub.subscribe(1, Role::kUser, "", flow(), 3);
  hub.subscribe(2, Role::kUser, "", flow(), 1);
  hub.subscribe(3, Role::kUser, "", flow(), 5);
  hub.subscribe(4, Role::kUser, "", flow(), 0);
  const auto out = hub.flush();
  EXPECT_EQ(jobs_to(out, 1), (std::vector<JobId>{4, 5}));
  ASSERT_EQ(out.deliveries.size(), 2u);
  bool gap = false;
  for (const Delivery& delivery : out.deliveries)
    if (delivery.to[0] == 2) gap = std::holds_alternative<Gap>(delivery.batch->items[0]);
  EXPECT_TRUE(gap);
}

TEST(Hub, EndTellsOfTheGapLast) {
  Hub hub;
  hub.join(1, Role::kScheduler, "", flow());
  hub.end_all();
  hub.add(1, job(1));
  const auto out = hub.flush();
  ASSERT_EQ(out.deliveries.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Gap>(out.deliveries[0].batch->items[0]));
  EXPECT_EQ(out.finished, std::vector<ConnId>{1});
}

}  // namespace
}  // namespace xce::push
