#include "controller/consensus/members.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "controller/consensus/core.h"

namespace xce::consensus {
namespace {

MemberView three() {
  MemberView view;
  for (uint64_t id = 1; id <= 3; ++id) {
    view.members.all.push_back({id, "host" + std::to_string(id), 9990, 0, true});
    view.connected.insert(id);
  }
  view.index = 10;
  view.committed = true;
  view.self = 1;
  return view;
}

MemberChange wish(MemberChange::Action action, uint64_t id, const std::string& host = "",
                  uint16_t port = 0) {
  MemberChange out;
  out.action = action;
  out.id = id;
  out.host = host;
  out.port = port;
  out.birth = 10;
  return out;
}
MemberChange again(MemberChange wish) {
  wish.resent = true;
  return wish;
}

void expect_refused(const MemberPlan& plan, absl::StatusCode code, const std::string& words) {
  EXPECT_EQ(plan.next, MemberPlan::kRefuse);
  EXPECT_EQ(plan.status.code(), code) << plan.status;
  EXPECT_NE(plan.status.ToString().find(words), std::string::npos) << plan.status;
}

TEST(Members, AreWrittenAsTheRaftLibraryWritesThem) {
  const uint64_t ids[] = {1, 7};
  const char* const addresses[] = {"a:1", "host:65535"};
  size_t length = 0;
  void* const raw = xce_core_encode_configuration(ids, addresses, 2, &length);
  const std::string theirs(static_cast<char*>(raw), length);
  std::free(raw);
  Members members;
  members.all = {{1, "a", 1, 0, true}, {7, "host", 65535, 0, true}};
  EXPECT_EQ(encode_members(members), theirs);
  members.all.push_back({9, "::1", 5, 0xabc, false});
  const std::string bytes = encode_members(members);
  EXPECT_TRUE(xce_core_valid_configuration(bytes.data(), bytes.size()));
  const auto back = decode_members(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->all.size(), 3u);
  EXPECT_EQ(back->all[2].host, "::1");
  EXPECT_EQ(back->all[2].port, 5);
  EXPECT_EQ(back->all[2].tag, 0xabcu);
  EXPECT_FALSE(back->all[2].voter);
  EXPECT_EQ(back->voters(), 2u);
  EXPECT_EQ(back->joining()->id, 9u);
  for (size_t cut = 0; cut < bytes.size() - 8; ++cut)
    EXPECT_FALSE(decode_members(bytes.substr(0, cut)).ok()) << cut;
}

TEST(Members, ANewOneIsTakenInAndAskedForAgainItIsFound) {
  MemberView view = three();
  const MemberChange add = wish(MemberChange::kAdd, 4, "host4", 9990);
  EXPECT_EQ(plan_change(view, add).next, MemberPlan::kAdd);
  EXPECT_EQ(plan_change(view, again(add)).next, MemberPlan::kAdd) << "nothing has changed since";
  view.members.all.push_back({4, "host4", 9990, 5, false});
  view.index = 11;
  EXPECT_EQ(plan_change(view, add).next, MemberPlan::kWait);
  view.members.all.back().voter = true;
  EXPECT_EQ(plan_change(view, again(add)).next, MemberPlan::kDone);
  view.committed = false;
  EXPECT_EQ(plan_change(view, again(add)).next, MemberPlan::kWait);
}

// Somebody else took it out meanwhile: it must not come back because a lost answer is asked for.
TEST(Members, WhatWasDoneAndUndoneIsNotDoneTwice) {
  MemberView view = three();
  view.index = 12;
  const MemberChange add = wish(MemberChange::kAdd, 4, "host4", 9990);
  expect_refused(plan_change(view, again(add)), absl::StatusCode::kUnknown, "undone");
  EXPECT_EQ(plan_change(view, add).next, MemberPlan::kAdd) << "asked for the first time";
}

TEST(Members, IdsAndAddressesAreUnique) {
  const MemberView view = three();
  expect_refused(plan_change(view, wish(MemberChange::kAdd, 3, "host9", 9990)),
                 absl::StatusCode::kFailedPrecondition, "another id");
  expect_refused(plan_change(view, wish(MemberChange::kAdd, 4, "host3", 9990)),
                 absl::StatusCode::kFailedPrecondition, "address of controller 3");
  expect_refused(plan_change(view, wish(MemberChange::kAdd, 0, "host4", 9990)),
                 absl::StatusCode::kInvalidArgument, "above 0");
  expect_refused(plan_change(view, wish(MemberChange::kAdd, 4)), absl::StatusCode::kInvalidArgument,
                 "4=host:port");
  expect_refused(plan_change(view, wish(MemberChange::kReplace, 5, "host5", 1)),
                 absl::StatusCode::kNotFound, "no controller 5");
  expect_refused(plan_change(view, wish(MemberChange::kRemove, 5)), absl::StatusCode::kNotFound,
                 "no controller 5");
}

TEST(Members, OneChangeAtATime) {
  MemberView view = three();
  view.committed = false;
  expect_refused(plan_change(view, wish(MemberChange::kRemove, 3)), absl::StatusCode::kAborted,
                 "try again");
  view = three();
  view.members.all.push_back({4, "host4", 9990, 5, false});
  expect_refused(plan_change(view, wish(MemberChange::kAdd, 5, "host5", 9990)),
                 absl::StatusCode::kAborted, "controller 4 is still joining");
  expect_refused(plan_change(view, wish(MemberChange::kRemove, 3)), absl::StatusCode::kAborted,
                 "controller 4 is still joining");
  EXPECT_EQ(plan_change(view, wish(MemberChange::kRemove, 4)).next, MemberPlan::kRemove)
      << "the one that joins can be given up";
}

TEST(Members, RemovalsKeepAMajorityWithinReach) {
  MemberView view = three();
  EXPECT_EQ(plan_change(view, wish(MemberChange::kRemove, 3)).next, MemberPlan::kRemove);
  view.connected.erase(3);
  EXPECT_EQ(plan_change(view, wish(MemberChange::kRemove, 3)).next, MemberPlan::kRemove);
  expect_refused(plan_change(view, wish(MemberChange::kRemove, 2)),
                 absl::StatusCode::kFailedPrecondition, "majority");
  view.members.all.resize(1);
  expect_refused(plan_change(view, wish(MemberChange::kRemove, 1)),
                 absl::StatusCode::kFailedPrecondition, "last one");
  EXPECT_EQ(plan_change(three(), again(wish(MemberChange::kRemove, 8))).next, MemberPlan::kDone);
}

TEST(Members, OnlyOneThatIsGoneIsReplaced) {
  MemberView view = three();
  expect_refused(plan_change(view, wish(MemberChange::kReplace, 3)),
                 absl::StatusCode::kFailedPrecondition, "in order");
  expect_refused(plan_change(view, wish(MemberChange::kReplace, 1)),
                 absl::StatusCode::kFailedPrecondition, "in order");
  view.connected.erase(3);
  const MemberPlan plan = plan_change(view, wish(MemberChange::kReplace, 3));
  EXPECT_EQ(plan.next, MemberPlan::kSwap);
  EXPECT_EQ(plan.member.host, "host3");
  EXPECT_EQ(plan_change(view, wish(MemberChange::kReplace, 3, "new", 1)).member.host, "new");
  expect_refused(plan_change(view, wish(MemberChange::kReplace, 3, "host2", 9990)),
                 absl::StatusCode::kFailedPrecondition, "address of controller 2");
  view.connected.erase(2);
  expect_refused(plan_change(view, wish(MemberChange::kReplace, 3)),
                 absl::StatusCode::kFailedPrecondition, "majority");
  // The primary died between taking it out and in: the next one goes on.
  view = three();
  view.members.all.pop_back();
  view.index = 11;
  EXPECT_EQ(plan_change(view, again(wish(MemberChange::kReplace, 3, "host3", 9990))).next,
            MemberPlan::kAdd);
}

}  // namespace
}  // namespace xce::consensus
