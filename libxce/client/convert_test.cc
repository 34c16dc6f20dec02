#include "libxce/client/convert.h"

#include <capnp/message.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace xce::client {
namespace {

TEST(BodyHash, DependsOnEveryFieldButTheKey) {
  const char* args[] = {"a", "b"};
  const char* joined[] = {"ab"};
  const xce_gres_t gres[] = {{"gpu", 1, nullptr, 0}};
  const uint32_t array[] = {1, 2};
  const xce_dependency_t deps[] = {{XCE_DEP_AFTEROK, 3}};
  using Change = std::function<void(xce_job_spec_t*)>;
  const std::vector<Change> changes = {
      [](auto* s) { (void)s; },
      [](auto* s) { s->name = "n"; },
      [](auto* s) { s->user = "n"; },
      [](auto* s) { s->queue = "n"; },
      [](auto* s) { s->work_dir = "n"; },
      [](auto* s) { s->stdin_path = "n"; },
      [](auto* s) { s->stdout_path = "n"; },
      [](auto* s) { s->stderr_path = "n"; },
      [](auto* s) { s->comment = "n"; },
      [](auto* s) { s->uid = 1; },
      [](auto* s) { s->gid = 1; },
      [](auto* s) { s->cpus = 2; },
      [](auto* s) { s->memory_mb = 1; },
      [](auto* s) { s->nodes = 2; },
      [](auto* s) { s->exclusive = true; },
      [](auto* s) { s->hold = true; },
      [](auto* s) { s->requeue = true; },
      [](auto* s) { s->time_limit_s = 1; },
      [](auto* s) { s->warn_signal = 1; },
      [](auto* s) { s->warn_before_s = 1; },
      [](auto* s) { s->priority = -1; },
      [](auto* s) { s->array_limit = 1; },
      [&](auto* s) { s->args = args, s->nargs = 2; },
      [&](auto* s) { s->args = joined, s->nargs = 1; },
      [&](auto* s) { s->env = args, s->nenv = 2; },
      [&](auto* s) { s->gres = gres, s->ngres = 1; },
      [&](auto* s) { s->array = array, s->narray = 2; },
      [&](auto* s) { s->dependencies = deps, s->ndependencies = 1; },
      [](auto* s) { s->script = "#!", s->script_len = 2; },
  };
  std::set<uint64_t> hashes;
  for (const Change& change : changes) {
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    change(&spec);
    const uint64_t hash = body_hash(spec);
    hashes.insert(hash);
    spec.submit_key = "key";
    EXPECT_EQ(body_hash(spec), hash);
  }
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(Convert, SpecSurvivesTheWire) {
  const char* args[] = {"sleep", "1"};
  const char* env[] = {"A=b"};
  const xce_gres_t gres[] = {{"gpu", 2, nullptr, 0}};
  const uint32_t array[] = {3, 5};
  const xce_dependency_t deps[] = {{XCE_DEP_AFTERNOTOK, 9}};
  const char script[] = "#!/bin/sh\0true";
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  spec.name = "n";
  spec.script = script;
  spec.script_len = sizeof script;
  spec.args = args;
  spec.nargs = 2;
  spec.env = env;
  spec.nenv = 1;
  spec.gres = gres;
  spec.ngres = 1;
  spec.array = array;
  spec.narray = 2;
  spec.dependencies = deps;
  spec.ndependencies = 1;
  spec.priority = -4;
  spec.requeue = true;
  capnp::MallocMessageBuilder message;
  auto job = message.initRoot<wire::Job>();
  job.setId(17);
  put_spec(spec, job.initSpec());
  Arena arena;
  const xce_job_t out = job_of(job.asReader(), &arena);
  EXPECT_EQ(out.id, 17u);
  EXPECT_STREQ(out.spec.name, "n");
  EXPECT_STREQ(out.spec.user, "");
  EXPECT_STREQ(out.reason, "");
  ASSERT_EQ(out.spec.script_len, sizeof script);
  EXPECT_EQ(std::memcmp(out.spec.script, script, sizeof script), 0);
  EXPECT_STREQ(out.spec.args[1], "1");
  EXPECT_STREQ(out.spec.env[0], "A=b");
  EXPECT_STREQ(out.spec.gres[0].name, "gpu");
  EXPECT_EQ(out.spec.array[1], 5u);
  EXPECT_EQ(out.spec.dependencies[0].kind, XCE_DEP_AFTERNOTOK);
  EXPECT_EQ(body_hash(out.spec), body_hash(spec));
}

TEST(Convert, EnumerationsOfANewerPeerAreBounded) {
  capnp::MallocMessageBuilder message;
  auto job = message.initRoot<wire::Job>();
  job.setState(static_cast<wire::JobState>(77));
  job.setDesired(static_cast<wire::Desired>(77));
  Arena arena;
  EXPECT_EQ(job_of(job.asReader(), &arena).state, XCE_JOB_LOST);
  EXPECT_EQ(job_of(job.asReader(), &arena).desired, XCE_DESIRED_KILL);
}

TEST(Arena, HoldsSmallAndLargeAlignedAndZeroed) {
  Arena arena;
  for (size_t n : {1, 100, 5000, 100000, 3}) {
    auto* p = arena.array<uint64_t>(n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignof(std::max_align_t), 0u);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(p[i], 0u);
      p[i] = ~uint64_t{0};
    }
  }
  EXPECT_NE(arena.array<char>(0), nullptr);
  free_result(nullptr);
  free_result(new_result<xce_host_t>(0).items);
}

TEST(Errors, EveryStatusHasANameAndWords) {
  for (int status = E_XCE_BASE + 1; status <= E_XCE_LAST; ++status) {
    EXPECT_EQ(std::strncmp(xce_errname(-status), "E_XCE_", 6), 0) << status;
    EXPECT_STRNE(xce_strerror(status), "unknown error");
    EXPECT_STREQ(xce_strerror(status), xce_strerror(-status));
  }
  EXPECT_STREQ(xce_errname(-111), "ECONNREFUSED");
  EXPECT_STREQ(xce_errname(999999), "E_UNKNOWN");
  EXPECT_TRUE(xce_is_retriable(-E_XCE_NOT_READY));
  EXPECT_FALSE(xce_is_retriable(-E_XCE_INVALID));
}

}  // namespace
}  // namespace xce::client
