// Cut at every byte: for every operation of xce/client.h, the connection ends after each byte sent
// and after each byte received. The caller sees one application and the right answer (L5.1-L5.3).
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "libxce/client/testing/client_fixture.h"
#include "libxce/client/testing/cutting_proxy.h"

namespace xce::client {
namespace {

using Way = CuttingProxy::Way;

enum class Kind { kRead, kWrite, kFireAndForget };

// An operation: runs it; 0 when its answer is what the mock gives.
struct Op {
  const char* name;
  Kind kind;
  std::function<int(xcecli_ctx_t)> run;
};

// What the mock controller and the state machine behind it have seen.
class State {
 public:
  Answer answer(const Seen& seen) {
    std::lock_guard<std::mutex> lock(mu_);
    if (seen.which != Which::HELLO) ++arrived_;
    if (seen.op_seq != 0 && ++attempts_[seen.op_seq] == 1) ++applied_;
    Answer a;
    a.job_id = seen.op_seq == 0 ? 42 : 42 + 1000 * seen.op_seq;  // the first result, always
    return a;
  }
  int applied() {
    std::lock_guard<std::mutex> lock(mu_);
    return applied_;
  }
  int arrived() {
    std::lock_guard<std::mutex> lock(mu_);
    return arrived_;
  }

 private:
  std::mutex mu_;
  std::map<uint64_t, int> attempts_;  // by operation sequence
  int applied_ = 0, arrived_ = 0;
};

int page(int rc, xce_job_page_t* jobs, size_t n) {
  const bool right =
      rc == 0 && jobs != nullptr && jobs->njobs == n && (n == 0 || jobs->jobs[0].id == 42);
  xce_free_job_page(jobs);
  return right ? 0 : rc == 0 ? -EPROTO : rc;
}

int expect(bool right, int rc) { return right ? 0 : rc == 0 ? -EPROTO : rc; }

int report(xcecli_ctx_t ctx, int (*notify)(xcecli_ctx_t, uint64_t, const xce_report_t*)) {
  xce_report_t r = {};
  r.outbox_seq = 1;
  r.job_id = 42;
  return notify(ctx, 1, &r);
}

std::vector<Op> reads() {
  return {
      {"hello", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_hello_t h = {};
         const int rc = xcecli_hello(c, &h);
         return expect(rc == 0 && h.applied == 7, rc);
       }},
      {"joblist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_job_page_t* p = nullptr;
         const int rc = xcecli_joblist(c, nullptr, &p);
         return page(rc, p, 1);
       }},
      {"backup", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_backup_part_t* part = nullptr;
         const int rc = xcecli_backup(c, 0, 0, &part);
         const bool right = rc == 0 && part->id == 42;
         xce_free_backup_part(part);
         return expect(right, rc);
       }},
      {"jobinfo", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_job_page_t* p = nullptr;
         const int rc = xcecli_jobinfo(c, 42, &p);
         return page(rc, p, 1);
       }},
      {"jobhist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_job_page_t* p = nullptr;
         const int rc = xcecli_jobhist(c, nullptr, &p);
         return page(rc, p, 0);
       }},
      {"workerlist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_host_t* h = nullptr;
         size_t n = 0;
         const int rc = xcecli_workerlist(c, &h, &n);
         const bool right = rc == 0 && n == 1 && std::strcmp(h[0].attrs.name, "mock") == 0;
         xce_free_hosts(h, n);
         return expect(right, rc);
       }},
      {"queuelist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_queue_t* q = nullptr;
         size_t n = 0;
         const int rc = xcecli_queuelist(c, &q, &n);
         const bool right = rc == 0 && n == 1 && std::strcmp(q[0].name, "mock") == 0;
         xce_free_queues(q, n);
         return expect(right, rc);
       }},
      {"reservationlist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_reservation_t* r = nullptr;
         size_t n = 0;
         const int rc = xcecli_reservationlist(c, &r, &n);
         const bool right = rc == 0 && n == 1 && std::strcmp(r[0].name, "mock") == 0;
         xce_free_reservations(r, n);
         return expect(right, rc);
       }},
      {"userlist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_user_t* u = nullptr;
         size_t n = 0;
         const int rc = xcecli_userlist(c, &u, &n);
         const bool right = rc == 0 && n == 1 && std::strcmp(u[0].name, "mock") == 0;
         xce_free_users(u, n);
         return expect(right, rc);
       }},
      {"reslist", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_gres_t* g = nullptr;
         size_t n = 0;
         const int rc = xcecli_reslist(c, &g, &n);
         const bool right = rc == 0 && n == 1 && g[0].count == 4;
         xce_free_gres(g, n);
         return expect(right, rc);
       }},
      {"resval", Kind::kRead,
       [](xcecli_ctx_t c) {
         uint32_t n = 0;
         const int rc = xcecli_resval(c, "gpu", &n);
         return expect(rc == 0 && n == 4, rc);
       }},
      {"clusterconf", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_cluster_status_t* s = nullptr;
         const int rc = xcecli_clusterconf(c, &s);
         const bool right = rc == 0 && s->heartbeat_ms == 30;
         xce_free_cluster_status(s);
         return expect(right, rc);
       }},
      {"clusterstatus", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_cluster_status_t* s = nullptr;
         const int rc = xcecli_clusterstatus(c, &s);
         const bool right = rc == 0 && s->node_id == 1;
         xce_free_cluster_status(s);
         return expect(right, rc);
       }},
      {"joblog", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_log_chunk_t* l = nullptr;
         const int rc = xcecli_joblog(c, 42, XCE_STDOUT, 0, 100, &l);
         const bool right = rc == 0 && l->len == 4 && std::memcmp(l->data, "mock", 4) == 0;
         xce_free_log_chunk(l);
         return expect(right, rc);
       }},
      {"joblog_wait", Kind::kRead,
       [](xcecli_ctx_t c) {
         xce_log_chunk_t* l = nullptr;
         const int rc = xcecli_joblog_wait(c, 42, XCE_STDOUT, 0, 100, 50, &l);
         const bool right = rc == 0 && l->len == 4;
         xce_free_log_chunk(l);
         return expect(right, rc);
       }},
      {"subscribe", Kind::kRead, [](xcecli_ctx_t c) { return xcecli_subscribe(c, 0); }},
      {"subscribe_jobs", Kind::kRead,
       [](xcecli_ctx_t c) {
         const uint64_t ids[] = {42, 43};
         return xcecli_subscribe_jobs(c, ids, 2);
       }},
      {"unsubscribe", Kind::kRead, xcecli_unsubscribe},
  };
}

std::vector<Op> writes() {
  return {
      {"join", Kind::kWrite,
       [](xcecli_ctx_t c) {
         xce_host_attrs_t host = {};
         host.name = "h";
         xce_joined_t j = {};
         const int rc = xcecli_join(c, HostRole_worker, &host, 1, &j);
         return expect(rc == 0 && j.revision == 7, rc);
       }},
      {"jobsub", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const char* args[] = {"true"};
         xce_job_spec_t spec;
         xce_job_spec_init(&spec);
         spec.args = args;
         spec.nargs = 1;
         xce_submitted_t s = {};
         const int rc = xcecli_jobsub(c, &spec, &s);
         // The first result of its own operation: another one's would be another number.
         static thread_local uint64_t last = 0;
         const bool right = rc == 0 && s.job_id % 1000 == 42 && s.job_id != last;
         last = s.job_id;
         return expect(right, rc);
       }},
      {"jobctrl", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const uint64_t id = 42;
         const int rc = xcecli_jobctrl(c, &id, 1, XCE_JOBCTRL_KILL, 0, false);
         return expect(rc == 1, rc);
       }},
      {"jobmodify", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const uint64_t id = 42;
         xce_job_spec_t spec;
         xce_job_spec_init(&spec);
         const int rc = xcecli_jobmodify(c, &id, 1, &spec, 1);
         return expect(rc == 1, rc);
       }},
      {"queuectrl", Kind::kWrite,
       [](xcecli_ctx_t c) {
         xce_queue_t q = {};
         q.name = "q";
         return xcecli_queuectrl(c, XCE_QUEUE_CREATE, &q);
       }},
      {"queuemodify", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const char* users[] = {"ann"};
         xce_queue_t q = {};
         q.name = "q";
         q.allowed_users = users;
         q.nallowed_users = 1;
         return xcecli_queuemodify(c, &q, XCE_QUEUE_ALLOWED_USERS);
       }},
      {"reservationctrl", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const char* names[] = {"h"};
         xce_reservation_t r = {};
         r.name = "r";
         r.hosts = r.users = names;
         r.nhosts = r.nusers = 1;
         r.end_ms = 1;
         return xcecli_reservationctrl(c, XCE_RESERVATION_CREATE, &r);
       }},
      {"hostctrl", Kind::kWrite,
       [](xcecli_ctx_t c) { return xcecli_hostctrl(c, XCE_HOST_DRAIN, "h", "r"); }},
      {"update_resvals", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const xce_gres_t g = {"gpu", 4, nullptr, 0};
         return xcecli_update_resvals(c, &g, 1);
       }},
      {"runtask", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const char* args[] = {"true"};
         return xcecli_runtask(c, 42, args, 1);
       }},
      {"jobdispatch", Kind::kWrite,
       [](xcecli_ctx_t c) {
         xce_alloc_t alloc = {};
         alloc.host = "h";
         const xce_dispatch_t d = {42, 1, &alloc, 1};
         int fate = -1;
         const int rc = xcecli_jobdispatch(c, 1, &d, 1, &fate);
         return expect(rc == 0 && fate == 0, rc);
       }},
      {"jobevict", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const xce_eviction_t e = {42, 1, "why"};
         return xcecli_jobevict(c, 1, &e, 1);
       }},
      {"set_pend_reason", Kind::kWrite,
       [](xcecli_ctx_t c) {
         const xce_pend_reason_t r = {42, "why", false};
         return xcecli_set_pend_reason(c, 1, &r, 1);
       }},
      {"schedadmin", Kind::kWrite,
       [](xcecli_ctx_t c) {
         char out[16] = "";
         const int rc = xcecli_schedadmin(c, "state", out, sizeof out);
         return expect(rc == 0 && std::strcmp(out, "mock") == 0, rc);
       }},
      {"memberctrl", Kind::kWrite,
       [](xcecli_ctx_t c) { return xcecli_memberctrl(c, XCE_MEMBER_TRANSFER, 2, nullptr, 0); }},
  };
}

std::vector<Op> fire_and_forget() {
  const auto ff = Kind::kFireAndForget;
  return {
      {"notify_jobstart", ff, [](xcecli_ctx_t c) { return report(c, xcecli_notify_jobstart); }},
      {"notify_jobfinish", ff, [](xcecli_ctx_t c) { return report(c, xcecli_notify_jobfinish); }},
      {"notify_jobfail", ff, [](xcecli_ctx_t c) { return report(c, xcecli_notify_jobfail); }},
      {"notify_jobstop", ff, [](xcecli_ctx_t c) { return report(c, xcecli_notify_jobstop); }},
      {"notify_jobchkpt", ff, [](xcecli_ctx_t c) { return report(c, xcecli_notify_jobchkpt); }},
      {"estimates", ff,
       [](xcecli_ctx_t c) {
         const xce_estimate_t e = {42, 7};
         return xcecli_estimates(c, 1, &e, 1);
       }},
      {"heartbeat", ff, xcecli_heartbeat},
      {"wakeup", ff, xcecli_wakeup},
      {"nop", ff, xcecli_nop},
      {"joblog_answer", ff,
       [](xcecli_ctx_t c) {
         xce_log_chunk_t l = {};
         return xcecli_joblog_answer(c, &l);
       }},
  };
}

std::vector<Op> all_operations() {
  std::vector<Op> out = reads();
  for (const auto& more : {writes(), fire_and_forget()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

// A context through the proxy; passes without a primary cost no sleep.
xcecli_ctx_t context_to(uint16_t port) {
  xce_client_config_t config;
  xce_client_config_init(&config);
  std::strcpy(config.masters[0], "127.0.0.1");
  config.master_ports[0] = port;
  config.call_deadline_ms = 20000;
  config.retry = {1000, 1, 1, 2.0};
  xcecli_ctx_t ctx = nullptr;
  EXPECT_EQ(xcecli_ctx_init(&ctx, &config), 0);
  return ctx;
}

class Cut : public testing::TestWithParam<Op> {
 protected:
  State state_;
  MockMaster master_{[this](const Seen& seen) { return state_.answer(seen); }};
  CuttingProxy proxy_{master_.port()};
};

TEST_P(Cut, AfterEveryByteOfRequestAndReply) {
  const Op& op = GetParam();
  const xcecli_ctx_t ctx = context_to(proxy_.port());
  ASSERT_EQ(xcecli_start(ctx), 0);
  ASSERT_EQ(op.run(ctx), 0) << error().message;  // numbers grow: the first may be shorter packed
  ASSERT_EQ(xcecli_hello(ctx, nullptr), 0);
  const size_t to_master = proxy_.relayed(Way::kToMaster),
               to_client = proxy_.relayed(Way::kToClient);
  ASSERT_EQ(op.run(ctx), 0) << error().message;
  const bool forgets = op.kind == Kind::kFireAndForget;
  if (forgets) {
    ASSERT_EQ(xcecli_hello(ctx, nullptr), 0);
  }
  size_t sizes[2] = {proxy_.relayed(Way::kToMaster) - to_master,
                     proxy_.relayed(Way::kToClient) - to_client};
  if (forgets) sizes[1] = 0;
  ASSERT_GT(sizes[0], 16u);
  int calls = 2;
  for (const Way way : {Way::kToMaster, Way::kToClient})
    for (size_t k = 0; k < sizes[static_cast<int>(way)]; ++k) {
      SCOPED_TRACE((way == Way::kToMaster ? "sent " : "received ") + std::to_string(k));
      const int applied = state_.applied();
      ++calls;
      proxy_.cut_after(way, k);
      ASSERT_EQ(op.run(ctx), 0) << error().message << " " << error().trail;
      if (forgets) {  // nobody repeats it; what follows takes a new connection
        ASSERT_EQ(xcecli_hello(ctx, nullptr), 0) << error().message;
        ASSERT_LE(state_.arrived(), calls);
      }
      ASSERT_TRUE(proxy_.was_cut());
      ASSERT_EQ(state_.applied(), applied + (op.kind == Kind::kWrite ? 1 : 0));
    }
  xcecli_ctx_free(ctx);
}

INSTANTIATE_TEST_SUITE_P(Operation, Cut, testing::ValuesIn(all_operations()),
                         [](const testing::TestParamInfo<Op>& info) { return info.param.name; });

class CutHandshake : public Cut {};

TEST_P(CutHandshake, AfterEveryByteOfPreambleHelloAndItsAnswer) {
  size_t sizes[2];
  {
    const xcecli_ctx_t ctx = context_to(proxy_.port());
    ASSERT_EQ(xcecli_start(ctx), 0);
    sizes[0] = proxy_.relayed(Way::kToMaster);
    sizes[1] = proxy_.relayed(Way::kToClient);
    xcecli_ctx_free(ctx);
  }
  for (const Way way : {Way::kToMaster, Way::kToClient})
    for (size_t k = 0; k < sizes[static_cast<int>(way)]; ++k) {
      SCOPED_TRACE((way == Way::kToMaster ? "sent " : "received ") + std::to_string(k));
      const int applied = state_.applied();
      proxy_.cut_after(way, k);
      const xcecli_ctx_t ctx = context_to(proxy_.port());
      EXPECT_EQ(xcecli_start(ctx), 0) << error().message;
      EXPECT_TRUE(proxy_.was_cut());
      EXPECT_EQ(xcecli_generation(ctx), 1u) << "a connection that never served does not count";
      EXPECT_EQ(GetParam().run(ctx), 0) << error().message;
      xcecli_ctx_free(ctx);
      // Another client: its operation numbers begin anew, so only the sum of attempts tells.
      ASSERT_LE(state_.applied(), applied + 1);
    }
}

INSTANTIATE_TEST_SUITE_P(Start, CutHandshake, testing::Values(writes()[2]),
                         [](const testing::TestParamInfo<Op>& info) { return info.param.name; });

}  // namespace
}  // namespace xce::client
