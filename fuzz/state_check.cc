#include "fuzz/state_check.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "controller/service/state_codec.h"
#include "fuzz/fuzz.h"

namespace xce::fuzz {
namespace {

constexpr char kHost[] = "h1";

JobSpec a_job(uint32_t cpus) {
  JobSpec spec;
  spec.user = "ann";
  spec.uid = 1000;
  spec.cpus = cpus;
  auto body = std::make_shared<JobBody>();
  body->args = {"true"};
  spec.body = std::move(body);
  return spec;
}

void run(state::State* state, Role role, Op op) {
  Entry entry;
  entry.time_ms = 1700000000000;
  entry.commands.resize(1);
  entry.commands[0].who = identity(role);
  entry.commands[0].op = std::move(op);
  const auto applied = state->apply(state->applied() + 1, entry);
  require(applied.results[0].status == 0, "setting up: " + applied.results[0].message);
}

}  // namespace

Identity identity(Role role) {
  Identity who;
  who.role = role;
  who.user = "ann";
  who.uid = 1000;
  who.name = kHost;
  return who;
}

std::unique_ptr<state::State> small_state() {
  auto state = std::make_unique<state::State>();
  Join worker;
  worker.role = Role::kWorker;
  worker.instance = 5;
  worker.host.name = kHost;
  worker.host.cpus = 8;
  worker.host.memory_mb = 1000;
  worker.host.gres = {{"gpu", 2}};
  run(state.get(), Role::kWorker, worker);
  Join scheduler;
  scheduler.role = Role::kScheduler;
  run(state.get(), Role::kScheduler, scheduler);
  run(state.get(), Role::kUser, a_job(2));
  JobSpec array = a_job(1);
  array.array = {0, 1, 2};
  array.submit_key = "key";
  run(state.get(), Role::kUser, array);
  Dispatches dispatches;
  dispatches.epoch = state->scheduler().epoch;
  dispatches.items = {{1, 1, {{kHost, 2, 0, {}}}}};
  run(state.get(), Role::kScheduler, dispatches);
  return state;
}

void check_state(const state::State& state) {
  const auto faults = state.check_invariants();
  require(faults.empty(), "invariant: " + (faults.empty() ? std::string() : faults[0]));
  std::string bytes;
  require(service::save_state(state,
                              [&](std::string_view more) {
                                bytes.append(more);
                                return true;
                              }),
          "a state can be saved");
  size_t at = 0;
  const auto copy = service::load_state([&](char* to, size_t n) {
    n = std::min(n, bytes.size() - at);
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return n;
  });
  require(copy.ok(), "a saved state can be loaded: " + std::string(copy.status().message()));
  require((*copy)->fingerprint() == state.fingerprint(), "a loaded state equals the saved one");
}

}  // namespace xce::fuzz
