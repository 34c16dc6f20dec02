#include "controller/sim/oracle.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libxce/wire/codec.h"
#include "xce/errnox.h"

namespace xce::sim {
namespace {

constexpr Index kCompareEvery = 32;  // entries
constexpr Index kCheckEvery = 64;

uint64_t hash_of(uint64_t term, std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u ^ term;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string words(const Oracle::WriteId& write) {
  return absl::StrCat("write ", write.second, " of client ", write.first.lo);
}

}  // namespace

void Oracle::leads(HostId node, uint64_t term) {
  const auto [it, fresh] = leaders_.emplace(term, node);
  if (!fresh && it->second != node)
    world_->wrong(
        absl::StrCat("term ", term, " has two primaries: node ", it->second, " and node ", node));
}

void Oracle::applied(HostId node, uint64_t index, uint64_t term, std::string_view entry) {
  Index& last = nodes_[node];
  if (index <= last) {
    world_->wrong(absl::StrCat("node ", node, " applies entry ", index, " after entry ", last));
    return;
  }
  const uint64_t hash = hash_of(term, entry);
  const auto next = entries_.upper_bound(last);
  const auto known = entries_.find(index);
  if (next != entries_.end() && next != known) {
    world_->wrong(absl::StrCat("node ", node, " goes from entry ", last, " to entry ", index,
                               ", but another one has applied entry ", next->first));
    return;
  }
  last = index;
  if (known == entries_.end()) {
    entries_[index] = hash;
    apply_to_model(index, entry);
  } else if (known->second != hash) {
    world_->wrong(absl::StrCat("node ", node, " applies another entry at index ", index,
                               " than was applied before: an acknowledged write may be lost"));
  }
}

void Oracle::apply_to_model(uint64_t index, std::string_view bytes) {
  const Entry entry = wire::decode_entry(bytes);
  const state::Applied applied = model_.apply(index, entry);
  for (size_t i = 0; i < entry.commands.size(); ++i) {
    const Command& command = entry.commands[i];
    if (command.op_seq != 0)
      check_result({command.client, command.op_seq}, applied.results[i], index);
  }
  for (const Event& event : applied.events) {
    const auto* const job = std::get_if<Job>(&event);
    if (job == nullptr || job->id <= last_job_) continue;
    last_job_ = job->id;
    const auto [it, fresh] = names_.emplace(job->spec.name, job->id);
    if (!fresh)
      world_->wrong(absl::StrCat("submission ", job->spec.name, " was done twice: jobs ",
                                 it->second, " and ", job->id));
  }
  if (index % kCompareEvery == 0) fingerprints_[index] = model_.fingerprint();
  if (index % kCheckEvery == 0) check_model();
}

void Oracle::check_result(const WriteId& write, const Result& result, Index index) {
  if (never_.count(write) > 0)
    world_->wrong(absl::StrCat(words(write), " is applied at entry ", index,
                               ", but its caller was told that it is not"));
  const auto [it, fresh] = results_.emplace(write, std::make_pair(result, index));
  if (fresh || result.status == E_XCE_OUTCOME_UNKNOWN) return;
  const Result& before = it->second.first;
  if (before.status == E_XCE_OUTCOME_UNKNOWN) {
    it->second = {result, index};
    return;
  }
  if (before.status != result.status || before.job != result.job || before.count != result.count)
    world_->wrong(absl::StrCat(words(write), " came to another result at entry ", index,
                               " than at entry ", it->second.second));
}

void Oracle::compare(HostId node, uint64_t index, const state::State& state) {
  if (index % kCompareEvery != 0 || world_->is_wrong()) return;
  const auto known = fingerprints_.find(index);
  if (known != fingerprints_.end() && known->second != state.fingerprint())
    world_->wrong(absl::StrCat("the state of node ", node, " after entry ", index,
                               " differs from the others'"));
}

void Oracle::restored(HostId node, uint64_t index, const state::State& state) {
  const Index at = state.applied();
  if (at > index || (entries_.count(at) == 0 && at != 0)) {
    world_->wrong(absl::StrCat("node ", node, " takes a state of entry ", at,
                               " from the snapshot of entry ", index));
    return;
  }
  nodes_[node] = at;
  compare(node, at, state);
}

void Oracle::acknowledged(const WriteId& write, const Result& told, Index index) {
  const auto known = results_.find(write);
  if (known == results_.end()) {
    world_->wrong(absl::StrCat(words(write), " was acknowledged at entry ", index,
                               ", but nobody has applied it"));
    return;
  }
  const Result& result = known->second.first;
  if (result.status != 0 || (told.job != 0 && told.job != result.job))
    world_->wrong(absl::StrCat(words(write), " came to job ", result.job, " with status ",
                               result.status, ", but its caller was told of job ", told.job));
  known_ = std::max(known_, index);
}

void Oracle::told_not_applied(const WriteId& write) {
  never_.insert(write);
  const auto known = results_.find(write);
  if (known != results_.end() && known->second.first.status == 0)
    world_->wrong(absl::StrCat(words(write), " was applied at entry ", known->second.second,
                               ", but its caller was told that it is not"));
}

void Oracle::read(Index before, Index index, const std::string& what) {
  if (index < before)
    world_->wrong(absl::StrCat(what, " was answered from the state of entry ", index,
                               ", but entry ", before, " was known before it was asked"));
  if (index > last_index())
    world_->wrong(
        absl::StrCat(what, " was answered from entry ", index, ", which nobody has applied"));
  known_ = std::max(known_, index);
}

void Oracle::not_found(JobId id, bool was_acknowledged) {
  if (was_acknowledged && model_.job(id) != nullptr)
    world_->wrong(absl::StrCat("job ", id, " was acknowledged, but a later read does not find it"));
}

void Oracle::check_model() {
  for (const std::string& fault : model_.check_invariants())
    world_->wrong(absl::StrCat("after entry ", model_.applied(), ": ", fault));
}

void Oracle::check_equal(HostId node, const state::State& state) {
  if (state.applied() == model_.applied() && state.fingerprint() == model_.fingerprint()) return;
  world_->wrong(absl::StrCat("in the end node ", node, " is at entry ", state.applied(),
                             ", and the newest is ", model_.applied(),
                             state.applied() == model_.applied() ? ", with another state" : ""));
}

}  // namespace xce::sim
