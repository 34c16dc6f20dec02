// Who belongs to the cluster: what the log says of it, whom to talk to, whose data directory is
// whose, and carrying out changes. (What a wish leads to: members.h.)
//
// Taking a node in: see who answers at its address; add it as one that gets the log but no vote;
// when a round of catching up takes no longer than an election, make it a voter. The last step is
// any leader's, without being asked: so a change that has begun ends, whoever leads. Replacing is
// taking out and in again: the Raft core must forget how far the old one was.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "controller/consensus/node.h"

namespace xce::consensus {
namespace {

constexpr uint64_t kProbeMs = 3000;    // for the new one to answer at its address
constexpr uint64_t kDoubtfulMs = 500;  // for one that refuses us to think better of it
constexpr size_t kMaxContacts = 16;
constexpr int kHandOvers = 5;  // tries, before a primary that is to be removed gives up

}  // namespace

// ---- what the log says --------------------------------------------------------------------------

bool Node::forget_changes_from(uint64_t index) {
  const auto from = changes_.lower_bound(index);
  const bool any = from != changes_.end();
  changes_.erase(from, changes_.end());
  return any;
}

void Node::settle_changes_up_to(const xce_core_message& append) {
  if (changes_.empty() || changes_.rbegin()->first > append.prev_log_index ||
      log_.term_at(append.prev_log_index) != append.prev_log_term)
    return;
  const auto& [index, data] = *changes_.rbegin();
  xce_core_update update;
  const int rv = xce_core_configuration(core_, now_ms(), index, data.data(), data.size(), &update);
  absorb(rv, update, "a change of configuration");
}

// Both the newest configuration and the newest one that is applied count: whom a change removes
// must still be told.
void Node::members_changed() {
  const auto decode = [](const std::string& bytes) {
    if (bytes.empty()) return Members();
    auto members = decode_members(bytes);
    return members.ok() ? *std::move(members) : Members();
  };
  members_ = decode(changes_.empty() ? conf_ : changes_.rbegin()->second);
  committed_members_ = decode(conf_);
  if (!members_.all.empty()) forget_contacts();
  connect_members();
}

// What a contact's data directory is was not remembered: those that are members say hello anew, or
// one that comes back empty would get past this node.
void Node::forget_contacts() {
  for (const auto& [id, contact] : std::exchange(contacts_, {}))
    if (net_ != nullptr && dialled_.erase(id) != 0) net_->remove_peer(id);
}

void Node::connect_members() {
  if (net_ == nullptr || failed_ || stopped_) return;
  std::map<NodeId, std::pair<std::string, uint16_t>> wanted;
  const auto want = [&](const Member& member) {
    if (member.id == options_.self) return;
    const auto other = options_.dial.find(member.id);
    wanted[member.id] =
        other != options_.dial.end() ? other->second : std::make_pair(member.host, member.port);
  };
  for (const auto& [id, contact] : contacts_) want(contact);
  for (const Member& member : committed_members_.all) want(member);
  for (const Member& member : members_.all) want(member);
  if (change_ && change_->wish.action != MemberChange::kRemove && change_->member.port != 0)
    want(change_->member);
  std::vector<NodeId> gone;
  for (const auto& [id, address] : dialled_) {
    const auto found = wanted.find(id);
    if (found == wanted.end() || found->second != address) gone.push_back(id);
  }
  for (const NodeId id : gone) {
    end_sending(id, 0);
    net_->remove_peer(id);
    dialled_.erase(id);
  }
  for (const auto& [id, address] : wanted)
    if (dialled_.emplace(id, address).second) net_->add_peer(id, address.first, address.second);
}

// ---- whose data directory is whose --------------------------------------------------------------

// The node of that id as it is, or as it is to be. One whose removal is not committed belongs: it
// may lead, and the removal may never be.
const Member* Node::known(NodeId id) const {
  if (change_ && change_->member.id == id && change_->member.port != 0) return &change_->member;
  const Member* const member = members_.find(id);
  return member != nullptr ? member : committed_members_.find(id);
}

Greeting Node::check_hello(const Hello& hello, bool dialled) {
  if (!running()) return {};
  if (hello.node == options_.self)
    return {absl::StrCat("node id ", hello.node, " is this node's own")};
  if (members_.all.empty()) return check_newcomer(hello, dialled);
  // One that has still to join is of no cluster.
  if (hello.cluster != dir_->cluster() && hello.cluster != 0)
    return {absl::StrCat("it belongs to cluster ", absl::Hex(hello.cluster, absl::kZeroPad16),
                         ", this is cluster ", absl::Hex(dir_->cluster(), absl::kZeroPad16),
                         ": the controllers must be given the same node ids and addresses")};
  const Member* const member = known(hello.node);
  // It was taken in while this node was away, and may lead by now: from it we learn who belongs.
  if (member == nullptr && hello.conf_index > newest_conf_index())
    return make_contact(hello, dialled);
  if (member == nullptr) {
    Greeting greeting;
    greeting.refused = absl::StrCat("node ", hello.node, " is not a member of this cluster");
    greeting.removed = committed_members_.find(hello.node) == nullptr;
    return greeting;
  }
  peer_holds_[hello.node] = hello.history;
  const auto seen = instances_.find(hello.node);
  if (seen != instances_.end() && seen->second.tag == member->tag) {
    if (seen->second.id == hello.instance) return {};
    // Replaced while this node was away. One that has forgotten its vote knows of nothing newer.
    if (hello.conf_index > newest_conf_index()) return make_contact(hello, dialled);
    return {
        absl::StrCat("node ", hello.node,
                     " has come back with another data directory: it could vote anew and lose "
                     "acknowledged work. Give it its old directory, or run `xce cluster replace ",
                     hello.node, "`")};
  }
  // Only looked at so far: if it is not taken in, the old one's directory is still the one to know.
  const Member* const there = members_.find(hello.node);
  if (change_ && member == &change_->member && (there == nullptr || there->tag != member->tag)) {
    if (dialled) change_->instance = hello.instance;
    if (change_->instance == hello.instance) return {};
  }
  // Seen for the first time. Whoever comes to us may be an impostor, or have been started with a
  // wrong id; who answers at the member's address is the member.
  if (dialled) {
    remember_instance(*member, hello.instance);
    return {};
  }
  Greeting greeting;
  greeting.refused =
      absl::StrCat("node ", hello.node, " at ", address_text(member->host, member->port),
                   " has not been reached from here yet");
  greeting.retry = true;
  return greeting;
}

// While this node knows no members: it waits to be taken in. It learns from those that it was told
// to ask which cluster this is, and then listens to whoever is of that cluster.
Greeting Node::check_newcomer(const Hello& hello, bool dialled) {
  if (dir_->cluster() == 0 && dialled && hello.cluster != 0) {
    const absl::Status status = dir_->join(hello.cluster);
    if (!status.ok()) {
      fail(status);
      return {std::string(status.message())};
    }
    spdlog::info("consensus: this node is to join cluster {}",
                 absl::StrCat(absl::Hex(hello.cluster, absl::kZeroPad16)));
  }
  Greeting greeting;
  if (dir_->cluster() == 0) {
    greeting.refused = "this node has not reached any of the controllers that it was told to join";
    greeting.retry = true;
  } else if (hello.cluster != dir_->cluster()) {
    greeting.refused =
        absl::StrCat("this node is to join cluster ", absl::Hex(dir_->cluster(), absl::kZeroPad16));
  } else {
    return make_contact(hello, dialled);
  }
  return greeting;
}

// A node of this cluster that is no member yet as far as we know: it is dialled and listened to
// until we know the members.
Greeting Node::make_contact(const Hello& hello, bool dialled) {
  if (dialled || contacts_.count(hello.node) != 0) return {};
  const size_t colon = hello.advertise.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(hello.advertise.substr(colon + 1), &port) ||
      port == 0 || port > 65535)
    return {"it does not say where it is to be found"};
  if (contacts_.size() >= kMaxContacts) return {"this node knows too many that are no members"};
  contacts_[hello.node] = {hello.node, hello.advertise.substr(0, colon),
                           static_cast<uint16_t>(port), 0, true};
  connect_members();
  return {};
}

void Node::remember_instance(const Member& member, const InstanceId& instance) {
  const KnownInstance known = {instance, member.tag};
  instances_[member.id] = known;
  std::string items;
  append_instance_item(member.id, known, &items);
  writer_->enqueue(std::move(items));
}

void Node::on_refused(uint64_t peer, const Hello& hello, const std::string& why) {
  if (!running()) return;
  if (change_ && change_->step == Change::kProbing && change_->member.id == peer) {
    if (hello.node == peer && hello.retry && hello.cluster == dir_->cluster()) return;
    change_->problem = why;
    change_->until_ms = std::min(change_->until_ms, now_ms() + kDoubtfulMs);
    settle();
    return;
  }
  if (hello.node != peer || hello.refused.empty() || why != hello.refused) return;
  if (members_.all.empty()) {
    if (hello.cluster != dir_->cluster() || waits_to_join_) return;
    waits_to_join_ = true;
    spdlog::info(
        "consensus: this node waits to be taken in: run `xce cluster add {}={}` (or replace, if "
        "there is a controller {} already)",
        options_.self, own_hello().advertise, options_.self);
    return;
  }
  if (hello.removed && (caught_up_once_ || !options_.join) && hello.cluster == dir_->cluster() &&
      hello.conf_index > conf_index_)
    fail(absl::FailedPreconditionError(absl::StrCat(
        "node ", options_.self, " was removed from the cluster, as node ", peer,
        " tells. Stop it; its data directory ", options_.data_dir,
        " is of no more use. To take it in again, give it an empty one, --join, and run `xce "
        "cluster add ",
        options_.self, "`")));
}

void Node::note_caught_up(uint64_t leader_commit) {
  if (caught_up_once_ || !running() || applied_ < leader_commit) return;
  const Member* const self = committed_members_.find(options_.self);
  caught_up_once_ = self != nullptr && self->voter;
}

// ---- changes ------------------------------------------------------------------------------------

MemberView Node::member_view() const {
  MemberView view;
  view.members = members_;
  view.index = newest_conf_index();
  view.committed = change_committed();
  view.self = options_.self;
  view.connected.insert(options_.self);
  for (const Member& member : members_.all)
    if (member.id != options_.self && net_->can_send(member.id)) view.connected.insert(member.id);
  return view;
}

void Node::change_members(const MemberChange& wish, std::function<void(absl::Status)> done) {
  if (!running() || !role_.ready) {
    done(absl::UnavailableError("this node is not the primary"));
    return;
  }
  if (change_ && same_wish(change_->wish, wish)) {  // asked again, over another connection say
    change_->done.push_back(std::move(done));
    return;
  }
  if (change_ && change_->step != Change::kCatchingUp) {
    done(absl::AbortedError(
        absl::StrCat("controller ", change_->member.id,
                     " is being added, removed or replaced just now: try again in a moment")));
    return;
  }
  const MemberPlan plan = plan_change(member_view(), wish);
  switch (plan.next) {
    case MemberPlan::kDone: done(absl::OkStatus()); return;
    case MemberPlan::kRefuse: done(plan.status); return;
    default: break;
  }
  if (plan.next == MemberPlan::kRemove && wish.id == options_.self) {
    spdlog::info("consensus: this node is to be removed: handing leadership over first");
    hand_over_to_leave(kHandOvers, std::move(done));
    return;
  }
  if (change_) end_change(absl::AbortedError("it was given up for another change"));
  if (running()) begin_change(wish, plan, std::move(done));
}

// A standby that was just writing may not take over in time; then this node still leads.
void Node::hand_over_to_leave(int tries, std::function<void(absl::Status)> done) {
  transfer(0, [this, tries, done = std::move(done)](const absl::Status& status) {
    if (absl::IsDeadlineExceeded(status) && tries > 1 && running()) {
      hand_over_to_leave(tries - 1, done);
    } else if (status.ok() || absl::IsUnavailable(status)) {
      done(absl::UnavailableError("leadership was handed over"));
    } else {
      done(absl::AbortedError(
          absl::StrCat("the primary is to be removed and has to hand over first, but ",
                       std::string(status.message()))));
    }
  });
}

void Node::begin_change(const MemberChange& wish, const MemberPlan& plan,
                        std::function<void(absl::Status)> done) {
  Change change;
  change.wish = wish;
  change.done.push_back(std::move(done));
  change.until_ms = now_ms() + kProbeMs;
  switch (plan.next) {
    case MemberPlan::kWait:
      change.step = Change::kCatchingUp;
      change.member.id = wish.id;
      if (const Member* const there = members_.find(wish.id); there != nullptr)
        change.member = *there;
      break;
    case MemberPlan::kRemove:
      change.step = Change::kTakingOut;
      change.member = *members_.find(wish.id);
      break;
    default:
      change.member = plan.member;
      change.member.tag = around_->random() | 1;
      spdlog::info("consensus: looking who answers at {}, to be controller {}",
                   address_text(change.member.host, change.member.port), change.member.id);
  }
  change_ = std::move(change);
  // Even at the same address a connection to the new one begins with its hello.
  if (change_->step == Change::kProbing && dialled_.count(change_->member.id) != 0) {
    net_->remove_peer(change_->member.id);
    dialled_.erase(change_->member.id);
  }
  connect_members();
  settle();
}

void Node::tend_members() {
  if (role_.role != Role::kLeader || !role_.ready) {
    round_ = Round();
    if (change_)
      end_change(change_->index != 0
                     ? absl::CancelledError("this node lost the primary role on the way")
                     : absl::UnavailableError("this node is no longer the primary"));
    return;
  }
  if (change_) step_change();
  if (running()) promote();
  if (running()) correct_own_address();
}

// The only member may say where it is to be found: whoever founded it with --single did not.
void Node::correct_own_address() {
  if (options_.advertise_port == 0 || members_.all.size() != 1 || !change_committed() || change_)
    return;
  Members next = members_;
  Member& self = next.all.front();
  if (self.id != options_.self ||
      (self.host == options_.advertise_host && self.port == options_.advertise_port))
    return;
  self.host = options_.advertise_host;
  self.port = options_.advertise_port;
  (void)submit_members(next);
}

void Node::step_change() {
  Members next = members_;
  const NodeId id = change_->member.id;
  const Member* const there = members_.find(id);
  switch (change_->step) {
    case Change::kProbing: check_candidate(); return;
    case Change::kTakingOut:
      if (!change_committed()) return;
      if (there != nullptr && change_->index == 0) {
        next.all.erase(next.all.begin() + (there - members_.all.data()));
        (void)submit_members(next);
      } else if (change_->wish.action == MemberChange::kRemove) {
        end_change(absl::OkStatus());
      } else {
        change_->step = Change::kTakingIn;
        settle_again_ = true;
      }
      return;
    case Change::kTakingIn:
      if (!change_committed()) return;
      if (there == nullptr) {
        next.all.push_back(change_->member);
        if (change_->instance) remember_instance(change_->member, *change_->instance);
        (void)submit_members(next);
      } else {
        change_->step = Change::kCatchingUp;
        settle_again_ = true;
      }
      return;
    case Change::kCatchingUp:
      if (!change_committed()) return;
      if (change_->wish.action == MemberChange::kRemove) {
        if (there == nullptr) end_change(absl::OkStatus());
      } else if (there == nullptr) {
        end_change(absl::AbortedError(absl::StrCat("controller ", id, " was taken out again")));
      } else if (there->voter) {
        end_change(absl::OkStatus());
      }
      return;
  }
}

// Whether who answers at the new one's address is it, and will do.
void Node::check_candidate() {
  const Member& member = change_->member;
  if (net_->can_send(member.id)) {
    change_->step = members_.find(member.id) != nullptr ? Change::kTakingOut : Change::kTakingIn;
    settle_again_ = true;
    return;
  }
  if (now_ms() < change_->until_ms) return;
  const std::string where = address_text(member.host, member.port);
  if (!change_->problem.empty()) {
    end_change(absl::FailedPreconditionError(
        absl::StrCat("the controller at ", where, " will not do: ", change_->problem)));
  } else {
    end_change(absl::FailedPreconditionError(absl::StrCat(
        "no controller answers at ", where, ": start it there first, with --id ", member.id,
        " and an empty data directory (a new one also with --join), then try again")));
  }
}

bool Node::submit_members(const Members& members) {
  const uint64_t before = log_.last_index();
  submit({{xce_core_term(core_), XCE_ENTRY_CHANGE, encode_members(members)}});
  if (!running() || log_.last_index() == before) return false;
  if (change_) change_->index = log_.last_index();
  settle_again_ = true;
  return true;
}

// Makes the one that has caught up a voter: a round in which it got everything that was there at
// the round's beginning took no longer than an election.
void Node::promote() {
  const Member* const joining = members_.joining();
  if (joining == nullptr || !change_committed() || !net_->can_send(joining->id)) {
    round_ = Round();
    return;
  }
  if (change_ && change_->step != Change::kCatchingUp) return;
  const uint64_t now = now_ms();
  if (round_.id != joining->id || round_.tag != joining->tag)
    round_ = {joining->id, joining->tag, log_.last_index(), now};
  if (xce_core_match(core_, joining->id) < round_.target) return;
  if (now - round_.begun_ms > static_cast<uint64_t>(options_.election_timeout_ms)) {
    round_ = {joining->id, joining->tag, log_.last_index(), now};
    return;
  }
  Members next = members_;
  for (Member& member : next.all)
    if (member.id == joining->id) member.voter = true;
  const NodeId id = joining->id;
  if (submit_members(next)) spdlog::info("consensus: node {} has caught up: making it a voter", id);
}

void Node::end_change(const absl::Status& status) {
  Change change = *std::move(change_);
  change_.reset();
  if (status.ok())
    spdlog::info("consensus: the change of controller {} is done", change.member.id);
  else
    spdlog::warn("consensus: the change of controller {} ends here: {}", change.member.id,
                 std::string(status.message()));
  // One that was looked at and not taken in; or the old one must be dialled again.
  if (change.step == Change::kProbing && running()) {
    net_->remove_peer(change.member.id);
    dialled_.erase(change.member.id);
  }
  connect_members();
  for (const auto& done : change.done) done(status);
}

}  // namespace xce::consensus
