#include "controller/sim/admin.h"

#include "absl/strings/str_cat.h"

namespace xce::sim {
namespace {

using consensus::MemberChange;

constexpr uint64_t kAnswerWithin = 5 * kSecond;  // then it is asked again
constexpr uint64_t kAgain = 100 * kMs;

const char* word(MemberChange::Action action) {
  switch (action) {
    case MemberChange::kAdd: return "add";
    case MemberChange::kRemove: return "remove";
    case MemberChange::kReplace: break;
  }
  return "replace";
}

}  // namespace

Admin::Admin(World* world, std::vector<std::unique_ptr<Machine>>* machines, size_t founders)
    : world_(world), machines_(machines), random_(world->random().fork()) {
  for (size_t i = 0; i < founders; ++i) {
    consensus::Member member;
    member.id = static_cast<uint64_t>((*machines)[i]->id());
    member.voter = true;
    members_.all.push_back(member);
  }
}

void Admin::start(uint64_t until) {
  until_ = until;
  next();
}

bool Admin::idle() const { return !wishing_ && members_.joining() == nullptr; }

void Admin::next() {
  world_->after(random_.between(100, 2500) * kMs, [this] {
    if (world_->now() >= until_) return;
    if (!choose()) {
      next();
      return;
    }
    world_->tell(absl::StrCat("somebody wants to ", word(wish_.action), " node ", wish_.id));
    ask();
  });
}

Machine* Admin::pick(bool member) {
  std::vector<Machine*> found;
  for (const auto& machine : *machines_)
    if (is_member(*machine) == member) found.push_back(machine.get());
  return found.empty() ? nullptr : found[random_.below(found.size())];
}

// With two of three gone only a backup would help, so nothing is taken out of two.
bool Admin::choose() {
  const auto action = static_cast<MemberChange::Action>(random_.below(3));
  if (action != MemberChange::kAdd && members_.all.size() < 3) return false;
  Machine* const machine = pick(action != MemberChange::kAdd);
  if (machine == nullptr) return false;
  wish_ = {};
  wish_.action = action;
  wish_.id = static_cast<uint64_t>(machine->id());
  if (action != MemberChange::kRemove) {
    wish_.host = absl::StrCat("node-", wish_.id);
    wish_.port = static_cast<uint16_t>(wish_.id);
    wipe(machine);
  }
  wishing_ = true;
  return true;
}

// Its data directory is lost, or taken away; it is started to be taken in by the others.
void Admin::wipe(Machine* machine) {
  std::vector<consensus::Peer> peers;
  for (const consensus::Member& member : members_.all)
    if (member.id != static_cast<uint64_t>(machine->id()))
      peers.push_back(
          {member.id, absl::StrCat("node-", member.id), static_cast<uint16_t>(member.id)});
  machine->wipe(std::move(peers));
}

Machine* Admin::serving() const {
  for (const auto& machine : *machines_)
    if (machine->serving() && !machine->paused()) return machine.get();
  return nullptr;
}

void Admin::ask() {
  const uint64_t asked = ++asked_;
  world_->after(kAnswerWithin, [this, asked] {
    if (asked == asked_ && wishing_) {
      wish_.resent = true;
      ask();
    }
  });
  Machine* const primary = serving();
  if (primary == nullptr) {
    look_again();
    return;
  }
  wish_.birth = wish_.birth == 0 ? primary->consensus()->applied() : wish_.birth;
  primary->post([this, asked, primary, wish = wish_] {
    primary->consensus()->change_members(wish, [this, asked, primary](const absl::Status& status) {
      if (!primary->dying()) answered(asked, status, primary->consensus()->members());
    });
  });
}

void Admin::look_again() {
  const uint64_t asked = asked_;
  world_->after(kAgain, [this, asked] {
    if (asked == asked_ && wishing_) ask();
  });
}

void Admin::answered(uint64_t asked, const absl::Status& status,
                     const consensus::Members& members) {
  if (asked != asked_ || !wishing_) return;
  world_->tell(absl::StrCat("to ", word(wish_.action), " node ", wish_.id, ": ",
                            status.ok() ? "done" : status.ToString()));
  if (status.ok()) {
    check(members);
    finished(members);
  } else if (absl::IsCancelled(status)) {
    wish_.resent = true;
    look_again();
  } else if (absl::IsFailedPrecondition(status) && wish_.action == MemberChange::kRemove) {
    finished(members);
  } else {
    look_again();  // who has lost a disk, or started a new node, asks until it is taken in
  }
}

void Admin::check(const consensus::Members& members) {
  const consensus::Member* const member = members.find(wish_.id);
  const bool there = member != nullptr && member->voter;
  if (there == (wish_.action == MemberChange::kRemove))
    world_->wrong(absl::StrCat("to ", word(wish_.action), " node ", wish_.id,
                               " is said to be done, and is not"));
}

void Admin::finished(const consensus::Members& members) {
  wishing_ = false;
  members_ = members;
  ++changes_;
  next();
}

}  // namespace xce::sim
