// Operation ids that a caller chooses: once across calls, contexts and restarts.
#include <cerrno>
#include <string>

#include "gtest/gtest.h"
#include "libxce/client/testing/client_fixture.h"
#include "xce/client.h"

namespace xce::client {
namespace {

int kill_job(xcecli_ctx_t ctx, uint64_t id) {
  return xcecli_jobctrl(ctx, &id, 1, XCE_JOBCTRL_KILL, 0, false);
}

std::vector<Seen> of_kind(MockMaster& master, Which which) {
  std::vector<Seen> out;
  for (const Seen& seen : master.seen())
    if (seen.which == which) out.push_back(seen);
  return out;
}

TEST(OpId, GoesWithTheNextWriteOnlyAndIsTheSameFromEveryProcess) {
  MockMaster master(serve);
  xce_op_id_t id;
  ASSERT_EQ(xce_op_id_of_key("order 4711", &id), 0);
  {
    Client first({master.port()});
    ASSERT_EQ(xcecli_start(first), 0);
    ASSERT_EQ(xcecli_set_op_id(first, &id), 0);
    EXPECT_EQ(first.list(), 0);  // a read leaves it alone
    EXPECT_EQ(kill_job(first, 5), 1) << error().message;
    EXPECT_EQ(kill_job(first, 5), 1);
    ASSERT_EQ(xcecli_set_op_id(first, &id), 0);
    ASSERT_EQ(xcecli_set_op_id(first, nullptr), 0);
    EXPECT_EQ(kill_job(first, 5), 1);
  }
  Client second({master.port()});  // as after a restart
  ASSERT_EQ(xcecli_start(second), 0);
  ASSERT_EQ(xcecli_set_op_id(second, &id), 0);
  EXPECT_EQ(kill_job(second, 5), 1);
  ASSERT_EQ(xcecli_set_op_id(second, &id), 0);
  EXPECT_EQ(kill_job(second, 6), 1);
  const auto seen = of_kind(master, Which::JOB_CTRL);
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0].client_hi, id.hi);
  EXPECT_EQ(seen[0].client_lo, id.lo);
  EXPECT_EQ(seen[0].op_seq, 1u);
  EXPECT_NE(seen[0].op_hash, 0u);
  for (const int own : {1, 2}) {
    EXPECT_NE(seen[own].client_hi, id.hi);
    EXPECT_EQ(seen[own].op_hash, 0u);
  }
  EXPECT_EQ(seen[3].client_lo, id.lo);
  EXPECT_EQ(seen[3].op_hash, seen[0].op_hash);
  EXPECT_EQ(seen[4].client_lo, id.lo);
  EXPECT_NE(seen[4].op_hash, seen[0].op_hash) << "another request";
}

TEST(OpId, AMadeIdKeepsItsBirthSoThatAForgottenOneIsNeverDoneAgain) {
  MockMaster master([](const Seen& seen) {
    Answer answer = seen.which == Which::JOB_CTRL ? status(E_XCE_OUTCOME_UNKNOWN) : Answer();
    answer.applied = seen.connection == 1 ? 100 : 900;
    return answer;
  });
  char text[XCE_OP_ID_TEXT_LEN];
  {
    Client first({master.port()});
    ASSERT_EQ(xcecli_start(first), 0);
    xce_op_id_t id;
    ASSERT_EQ(xcecli_make_op_id(first, &id), 0) << error().message;
    EXPECT_EQ(id.birth, 100u);
    ASSERT_EQ(xce_op_id_text(&id, text, sizeof text), 0);
  }
  Client second({master.port()});
  ASSERT_EQ(xcecli_start(second), 0);
  xce_op_id_t id;
  ASSERT_EQ(xce_op_id_parse(text, &id), 0);
  ASSERT_EQ(xcecli_set_op_id(second, &id), 0);
  EXPECT_EQ(kill_job(second, 5), -E_XCE_OUTCOME_UNKNOWN);
  EXPECT_EQ(error().outcome, XCE_OUTCOME_MAYBE);
  for (const Seen& seen : of_kind(master, Which::JOB_CTRL)) EXPECT_EQ(seen.birth, 100u);
}

TEST(OpId, ASubmissionUnderAnIdFindsItsJobAlsoWhenTheAnswerIsForgotten) {
  MockMaster master([](const Seen& seen) {
    Answer answer = seen.which == Which::JOB_SUBMIT ? status(E_XCE_DUP_JOB) : Answer();
    answer.existing = true;
    return answer;
  });
  Client client({master.port()});
  ASSERT_EQ(xcecli_start(client), 0);
  EXPECT_EQ(client.submit(nullptr), -E_XCE_DUP_JOB);
  xce_op_id_t id;
  ASSERT_EQ(xce_op_id_of_key("mine", &id), 0);
  xce_submitted_t submitted = {};
  ASSERT_EQ(xcecli_set_op_id(client, &id), 0);
  EXPECT_EQ(client.submit(&submitted), 0) << error().message;
  EXPECT_EQ(submitted.job_id, 42u);
  ASSERT_EQ(xcecli_set_op_id(client, &id), 0);
  EXPECT_EQ(client.submit(nullptr, "another key"), -E_XCE_DUP_JOB) << "that key is not the id's";
}

TEST(OpId, IsAWord) {
  xce_op_id_t id = {0x0123456789abcdef, 1, 77}, back = {};
  char text[XCE_OP_ID_TEXT_LEN];
  ASSERT_EQ(xce_op_id_text(&id, text, sizeof text), 0);
  EXPECT_STREQ(text, "0123456789abcdef0000000000000001-77");
  ASSERT_EQ(xce_op_id_parse(text, &back), 0);
  EXPECT_EQ(back.hi, id.hi);
  EXPECT_EQ(back.lo, id.lo);
  EXPECT_EQ(back.birth, id.birth);
  EXPECT_EQ(xce_op_id_text(&id, text, 10), -ENAMETOOLONG);
  for (const char* wrong :
       {"", "x", "0123456789abcdef0000000000000001", " 123", "-1-1-1",
        "0123456789abcdef0000000000000001-77 ", "0123456789ABCDEF0000000000000001-77",
        "0123456789abcdef0000000000000001-077"})
    EXPECT_EQ(xce_op_id_parse(wrong, &back), -EINVAL) << wrong;
  EXPECT_EQ(xce_op_id_of_key("", &back), -EINVAL);
  const xce_op_id_t none = {};
  EXPECT_EQ(xcecli_set_op_id(nullptr, &id), -EINVAL);
  MockMaster master(serve);
  Client client({master.port()});
  EXPECT_EQ(xcecli_set_op_id(client, &none), -EINVAL);
}

}  // namespace
}  // namespace xce::client
