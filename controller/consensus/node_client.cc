// Proposals, reads, applying, hand-over: what Node does for those who use it.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"
#include "libxce/base/crash_point.h"

namespace xce::consensus {
namespace {

// In one turn of the loop: who replays a long log still hears suspicions and votes within a few
// milliseconds, though it takes some turns until each of these has been read, decided and written.
constexpr uint64_t kApplyBudgetNs = 1000000;
constexpr size_t kMaxBacklogBytes = size_t{256} << 20;

}  // namespace

void Node::propose(std::string entry, std::function<void(Outcome)> done) {
  proposals_.push_back({std::move(entry), std::move(done)});
  come_round();
}

void Node::barrier(std::function<void(bool)> done) {
  reads_.push_back(std::move(done));
  come_round();
}

// The caller may itself be a prepare handle that runs after ours: the loop must not sleep on what
// it has just given.
void Node::come_round() {
  if (!running() && turns_ == nullptr) return refuse_all();  // no loop will come round for it
  if (turns_ != nullptr) turns_->set_busy(true);
}

// Once before and once after every poll: everything that has been proposed since is one submission.
void Node::flush() {
  if (proposals_.empty() && reads_.empty() && !question_) return;
  if (!running() || xce_core_state(core_) != XCE_STATE_LEADER) {
    std::vector<Proposal> proposals;
    std::vector<std::function<void(bool)>> reads;
    proposals.swap(proposals_);
    reads.swap(reads_);
    for (Proposal& p : proposals) p.done({Outcome::kNotApplied, 0, 0});
    for (auto& read : reads) read(false);
    return;
  }
  // While leadership is being handed over the core takes nothing: wait for how that ends.
  if (xce_core_transferee(core_) != 0) return;
  if (!proposals_.empty()) submit_proposals();
  if (running() && xce_core_state(core_) == XCE_STATE_LEADER) ask_voters();
}

void Node::submit_proposals() {
  const uint64_t term = xce_core_term(core_);
  uint64_t index = log_.last_index();
  std::vector<LogEntry> entries;
  std::vector<Proposal> refused;
  std::vector<std::pair<uint64_t, Waiter>> waiters;
  const bool full = writer_->backlog() > kMaxBacklogBytes;
  const size_t max_entry =
      std::min(kMaxEntryBytes, LogStore::max_items(options_.segment_bytes) / 2) - 8;
  for (Proposal& p : proposals_) {
    if (full || p.entry.size() > max_entry) {
      refused.push_back(std::move(p));
      continue;
    }
    entries.push_back({term, XCE_ENTRY_COMMAND, pad_entry(std::move(p.entry))});
    waiters.emplace_back(++index, Waiter{term, std::move(p.done)});
  }
  proposals_.clear();
  for (auto& waiter : waiters) waiters_.insert(std::move(waiter));
  if (!entries.empty()) submit(std::move(entries));
  for (Proposal& p : refused) p.done({Outcome::kNotApplied, 0, 0});
  if (running()) settle();
}

// Reads are answered once a majority has said, after they came, that it is still in our term. Where
// it does not answer, or may not know the question, an entry of our own does it. Those that come
// while the answers are under way wait for the next question.
void Node::ask_voters() {
  const uint64_t now = now_ms();
  if (question_) {
    if (now - question_->asked_ms < 2 * static_cast<uint64_t>(options_.heartbeat_ms)) return;
    std::vector<std::function<void(bool)>> reads = std::move(question_->reads);
    question_.reset();
    reads.insert(reads.end(), std::make_move_iterator(reads_.begin()),
                 std::make_move_iterator(reads_.end()));
    reads_ = std::move(reads);
    submit_barrier();
    return;
  }
  if (reads_.empty()) return;
  const uint64_t term = xce_core_term(core_);
  if (!role_.ready || role_.term != term) {
    submit_barrier();
    return;
  }
  Question question;
  question.asked = {term, ++question_seq_};
  question.index = commit_;
  question.asked_ms = now;
  question.reads.swap(reads_);
  question_ = std::move(question);
  for (const Member& peer : members_.all) {
    if (peer.id == options_.self || !xce_core_is_voter(core_, peer.id) || !net_->can_send(peer.id))
      continue;
    std::string frame;
    append_still_leading_frame(question_->asked, &frame);
    send_or_hold(peer.id, std::move(frame));
  }
  settle();  // a cluster of one needs nobody's answer
}

// Reads share one entry; those that come while it is under way wait for the next.
void Node::submit_barrier() {
  if (reads_.empty() || barrier_in_flight_ != 0) return;
  const uint64_t term = xce_core_term(core_);
  barrier_in_flight_ = log_.last_index() + 1;
  for (auto& read : reads_) reads_in_flight_.push_back({barrier_in_flight_, term, std::move(read)});
  reads_.clear();
  submit({{term, XCE_ENTRY_BARRIER, std::string(8, '\0')}});
  if (running()) settle();
}

void Node::count_answers() {
  if (!question_) return;
  const bool leads = role_.role == Role::kLeader && role_.term == question_->asked.term;
  unsigned yes = xce_core_is_voter(core_, options_.self) ? 1 : 0;
  for (const NodeId id : question_->yes) yes += xce_core_is_voter(core_, id) ? 1 : 0;
  if (leads && (yes <= xce_core_voters(core_) / 2 || applied_ < question_->index)) return;
  const Question done = *std::move(question_);
  question_.reset();
  for (const auto& read : done.reads) read(leads);
}

void Node::submit(std::vector<LogEntry> entries) {
  std::vector<xce_core_entry> raw;
  raw.reserve(entries.size());
  for (const LogEntry& e : entries) raw.push_back({e.term, e.type, e.data.data(), e.data.size()});
  xce_core_update update;
  const int rv =
      xce_core_submit(core_, now_ms(), raw.data(), static_cast<unsigned>(raw.size()), &update);
  absorb(rv, update, "a submission");
}

// Once a turn while there is something left to apply.
void Node::apply_more() {
  apply_later_ = false;
  settle();
}

void Node::apply_committed() {
  if (apply_later_) return;  // or each event of this turn would take a share of its own
  const uint64_t start = around_->now_ns();
  // What a majority has may still be on its way to our own disk, and until then a truncation could
  // reach it.
  while (running() && applied_ < std::min(commit_, stored_) && state_machine_->takes_more()) {
    const uint64_t index = applied_ + 1;
    const LogEntry& entry = log_.at(index);
    const uint64_t term = entry.term;
    applied_ = index;
    // An entry that nobody shared a record with takes a sector of the log.
    applied_bytes_ +=
        entry.type == XCE_ENTRY_BARRIER ? kSector : entry_item_size(entry.data.size());
    if (entry.type == XCE_ENTRY_COMMAND) {
      crash_point("apply.before");
      state_machine_->apply(index, term, strip_padding(entry.data));
    } else if (entry.type == XCE_ENTRY_CHANGE) {
      xce_core_update update;
      const int rv = xce_core_configuration(core_, now_ms(), index, entry.data.data(),
                                            entry.data.size(), &update);
      conf_index_ = index;
      conf_ = entry.data;
      changes_.erase(changes_.begin(), changes_.upper_bound(index));
      absorb(rv, update, "a change of configuration");
      if (running()) members_changed();
    }
    if (stopped_) return;
    answer_waiters(index, term);
    if (running() && around_->now_ns() - start > kApplyBudgetNs) break;
  }
  if (!running() || turns_ == nullptr) return;
  apply_later_ = applied_ < std::min(commit_, stored_) && state_machine_->takes_more();
  turns_->set_busy(apply_later_);
}

void Node::answer_waiters(uint64_t index, uint64_t term) {
  for (;;) {
    const auto found = waiters_.begin();
    if (found == waiters_.end() || found->first > index) return;
    Waiter waiter = std::move(found->second);
    const uint64_t at = found->first;
    waiters_.erase(found);
    // Another term's entry at this index: the proposal is lost for good.
    const bool applied = at == index && waiter.term == term;
    waiter.done({applied ? Outcome::kApplied : Outcome::kNotApplied, at, waiter.term});
  }
}

void Node::answer_reads() {
  if (barrier_in_flight_ != 0 && applied_ >= barrier_in_flight_) barrier_in_flight_ = 0;
  while (!reads_in_flight_.empty() && reads_in_flight_.front().index <= applied_) {
    Read read = std::move(reads_in_flight_.front());
    reads_in_flight_.pop_front();
    read.done(role_.role == Role::kLeader && role_.term == read.term);
  }
  count_answers();
}

// A node that has lost its role may learn what became of its proposals, but they need not wait for
// ever.
void Node::give_up_waiters() {
  if (waiters_.empty() || role_.role == Role::kLeader ||
      now_ms() - lost_role_ms_ < 2 * static_cast<uint64_t>(options_.election_timeout_ms))
    return;
  std::multimap<uint64_t, Waiter> waiters;
  waiters.swap(waiters_);
  for (auto& [index, waiter] : waiters) waiter.done({Outcome::kUnknown, index, waiter.term});
}

void Node::refuse_all() {
  std::vector<Proposal> proposals;
  std::vector<std::function<void(bool)>> reads;
  std::multimap<uint64_t, Waiter> waiters;
  std::deque<Read> in_flight;
  proposals.swap(proposals_);
  reads.swap(reads_);
  waiters.swap(waiters_);
  in_flight.swap(reads_in_flight_);
  if (question_)
    std::move(question_->reads.begin(), question_->reads.end(), std::back_inserter(reads));
  question_.reset();
  barrier_in_flight_ = 0;
  for (Proposal& p : proposals) p.done({Outcome::kNotApplied, 0, 0});
  for (auto& [index, waiter] : waiters) waiter.done({Outcome::kUnknown, index, waiter.term});
  for (auto& read : reads) read(false);
  for (Read& read : in_flight) read.done(false);
  if (transfer_) {
    auto done = std::move(transfer_->done);
    transfer_.reset();
    done(absl::UnavailableError("this node has stopped taking part"));
  }
  refuse_backups(absl::UnavailableError("this node has stopped taking part"));
  if (change_) end_change(absl::CancelledError("this node has stopped taking part"));
}

void Node::transfer(NodeId to, std::function<void(absl::Status)> done) {
  if (!running() || xce_core_state(core_) != XCE_STATE_LEADER) {
    done(absl::FailedPreconditionError("this node is not the primary"));
    return;
  }
  if (transfer_) {
    done(absl::FailedPreconditionError("a hand-over is under way"));
    return;
  }
  if (to == 0) {
    uint64_t best = 0;
    for (const Member& peer : members_.all) {
      if (peer.id == options_.self || !net_->can_send(peer.id) ||
          !xce_core_is_voter(core_, peer.id))
        continue;
      const uint64_t match = xce_core_match(core_, peer.id);
      if (to == 0 || match > best) {
        to = peer.id;
        best = match;
      }
    }
  }
  if (to == 0 || to == options_.self || !xce_core_is_voter(core_, to) || !net_->can_send(to)) {
    done(absl::FailedPreconditionError(
        to == 0 ? "no standby is connected"
                : absl::StrCat("node ", to, " is not a connected standby")));
    return;
  }
  xce_core_update update;
  const int rv = xce_core_transfer(core_, now_ms(), to, &update);
  if (rv != XCE_CORE_OK) {
    done(absl::FailedPreconditionError(xce_core_strerror(rv)));
    return;
  }
  transfer_ = Transfer{to, now_ms() + 2 * static_cast<uint64_t>(options_.election_timeout_ms),
                       std::move(done)};
  absorb(rv, update, "a hand-over");
  settle();
}

void Node::check_transfer() {
  if (!transfer_) return;
  absl::Status status;
  if (role_.role == Role::kLeader) {
    if (xce_core_transferee(core_) != 0) return;
    status = absl::DeadlineExceededError(
        absl::StrCat("node ", transfer_->to, " did not take over in time"));
  } else if (role_.leader == transfer_->to) {
    status = absl::OkStatus();
  } else if (role_.leader != 0) {
    status = absl::UnavailableError(absl::StrCat("node ", role_.leader, " has taken over instead"));
  } else if (now_ms() >= transfer_->deadline_ms) {
    status = absl::UnavailableError("no node has taken over yet");
  } else {
    return;
  }
  auto done = std::move(transfer_->done);
  transfer_.reset();
  done(std::move(status));
}

}  // namespace xce::consensus
