#include "controller/consensus/members.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace xce::consensus {
namespace {

constexpr uint8_t kEncoding = 1;
enum : uint8_t { kStandby = 0, kVoter = 1, kSpare = 2 };  // the library's roles

absl::Status malformed() { return absl::InvalidArgumentError("no configuration of the cluster"); }

void append_u64(uint64_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);  // little endian, as the host
}

std::string address_of(const Member& member) {
  std::string out = address_text(member.host, member.port);
  if (member.tag != 0) absl::StrAppend(&out, "/", absl::Hex(member.tag, absl::kZeroPad16));
  return out;
}

bool parse_address(std::string_view text, Member* to) {
  const size_t slash = text.rfind('/');
  if (slash != std::string_view::npos) {
    const std::string tag(text.substr(slash + 1));
    if (!absl::SimpleHexAtoi(tag, &to->tag)) return false;
    text = text.substr(0, slash);
  }
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == std::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(std::string(text.substr(colon + 1)), &port) || port > 65535)
    return false;
  to->host = std::string(text.substr(0, colon));
  if (to->host.size() > 2 && to->host.front() == '[' && to->host.back() == ']')
    to->host = to->host.substr(1, to->host.size() - 2);
  to->port = static_cast<uint16_t>(port);
  return true;
}

MemberPlan refuse(absl::Status status) {
  MemberPlan plan;
  plan.status = std::move(status);
  return plan;
}
MemberPlan then(MemberPlan::Next next, Member member = {}) {
  MemberPlan plan;
  plan.next = next;
  plan.member = std::move(member);
  return plan;
}

std::string name(uint64_t id) { return absl::StrCat("controller ", id); }

// The wish may have been carried out, and undone since: whoever asks must look.
MemberPlan undone() {
  return refuse(absl::UnknownError(
      "the controllers have changed since this command began, and it may have been carried out "
      "and undone: look at 'xce cluster status' before you ask again"));
}

MemberPlan busy(const MemberView& view) {
  const Member* const joining = view.members.joining();
  return refuse(absl::AbortedError(
      joining != nullptr
          ? absl::StrCat(name(joining->id),
                         " is still joining: wait until 'xce cluster status' shows it as a "
                         "standby, or take it out with 'xce cluster remove ",
                         joining->id, "'")
          : std::string("another change of the controllers is under way: try again in a moment")));
}

MemberPlan no_majority(const std::string& what) {
  return refuse(absl::FailedPreconditionError(
      absl::StrCat(what,
                   " would leave no majority of voters within reach, and the cluster would "
                   "stop: bring the others back first ('xce cluster status' shows them)")));
}

MemberPlan plan_add(const MemberView& view, const MemberChange& wish) {
  const Member* const there = view.members.find(wish.id);
  if (there != nullptr) {
    if (there->host != wish.host || there->port != wish.port)
      return refuse(absl::FailedPreconditionError(
          absl::StrCat("there is a controller ", wish.id, " already, at ",
                       address_text(there->host, there->port),
                       ": give the new one another id, or use 'xce cluster replace'")));
    return then(there->voter && view.committed ? MemberPlan::kDone : MemberPlan::kWait);
  }
  if (const Member* const other = view.members.at(wish.host, wish.port); other != nullptr)
    return refuse(absl::FailedPreconditionError(
        absl::StrCat(address_text(wish.host, wish.port), " is the address of ", name(other->id),
                     ": each controller needs one of its own")));
  if (wish.resent && view.index > wish.birth) return undone();
  if (!view.committed || view.members.joining() != nullptr) return busy(view);
  if (view.members.all.size() >= kMaxMembers)
    return refuse(absl::FailedPreconditionError(absl::StrCat(
        "there are ", view.members.all.size(), " controllers, and no more can be: remove one")));
  return then(MemberPlan::kAdd, {wish.id, wish.host, wish.port, 0, false});
}

MemberPlan plan_remove(const MemberView& view, const MemberChange& wish) {
  const Member* const there = view.members.find(wish.id);
  if (there == nullptr) {
    if (wish.resent) return then(view.committed ? MemberPlan::kDone : MemberPlan::kWait);
    return refuse(absl::NotFoundError(
        absl::StrCat("there is no controller ", wish.id, ": 'xce cluster status' lists them")));
  }
  if (!view.committed) return busy(view);
  if (there->voter && view.members.voters() == 1)
    return refuse(absl::FailedPreconditionError(
        absl::StrCat(name(wish.id),
                     " is the last one: the cluster would be gone. Stop it instead, "
                     "or add another one first")));
  const Member* const joining = view.members.joining();
  if (joining != nullptr && joining->id != wish.id) return busy(view);
  if (there->voter && !keeps_majority(view, wish.id))
    return no_majority(absl::StrCat("removing ", name(wish.id)));
  return then(MemberPlan::kRemove);
}

MemberPlan plan_replace(const MemberView& view, const MemberChange& wish) {
  const Member* const there = view.members.find(wish.id);
  if (there == nullptr) {
    // It was taken out, and not taken in again: go on where that ended.
    if (wish.resent && !wish.host.empty()) {
      MemberChange rest = wish;
      rest.resent = false;
      return plan_add(view, rest);
    }
    return refuse(absl::NotFoundError(
        absl::StrCat("there is no controller ", wish.id,
                     " to replace: 'xce cluster status' lists them; 'xce cluster add' takes in a "
                     "new one")));
  }
  Member to = {wish.id, wish.host.empty() ? there->host : wish.host,
               wish.host.empty() ? there->port : wish.port, 0, false};
  const bool same_place = there->host == to.host && there->port == to.port;
  if (wish.resent && same_place && view.connected.count(wish.id) != 0)
    return then(there->voter && view.committed ? MemberPlan::kDone : MemberPlan::kWait);
  if (wish.id == view.self || view.connected.count(wish.id) != 0)
    return refuse(absl::FailedPreconditionError(
        absl::StrCat(name(wish.id),
                     " is there and in order: there is nothing to replace. To move it to another "
                     "machine, add a new one and remove this one")));
  const Member* const other = view.members.at(to.host, to.port);
  if (other != nullptr && other->id != wish.id)
    return refuse(absl::FailedPreconditionError(
        absl::StrCat(address_text(to.host, to.port), " is the address of ", name(other->id))));
  const Member* const joining = view.members.joining();
  if (!view.committed || (joining != nullptr && joining->id != wish.id)) return busy(view);
  if (there->voter && view.members.voters() == 1)
    return refuse(absl::FailedPreconditionError("the last controller cannot be replaced"));
  if (there->voter && !keeps_majority(view, wish.id))
    return no_majority(absl::StrCat("replacing ", name(wish.id)));
  return then(MemberPlan::kSwap, to);
}

}  // namespace

const Member* Members::find(uint64_t id) const {
  for (const Member& member : all)
    if (member.id == id) return &member;
  return nullptr;
}

const Member* Members::at(const std::string& host, uint16_t port) const {
  for (const Member& member : all)
    if (member.host == host && member.port == port) return &member;
  return nullptr;
}

size_t Members::voters() const {
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [](const Member& m) { return m.voter; }));
}

const Member* Members::joining() const {
  for (const Member& member : all)
    if (!member.voter) return &member;
  return nullptr;
}

std::string address_text(const std::string& host, uint16_t port) {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port)
                                             : absl::StrCat("[", host, "]:", port);
}

std::string encode_members(const Members& members) {
  std::string out(1, static_cast<char>(kEncoding));
  append_u64(members.all.size(), &out);
  for (const Member& member : members.all) {
    append_u64(member.id, &out);
    out += address_of(member);
    out += '\0';
    out += static_cast<char>(member.voter ? kVoter : kStandby);
  }
  out.resize((out.size() + 7) / 8 * 8, '\0');
  return out;
}

absl::StatusOr<Members> decode_members(std::string_view bytes) {
  uint64_t n = 0;
  if (bytes.size() < 9 || bytes[0] != static_cast<char>(kEncoding)) return malformed();
  std::memcpy(&n, bytes.data() + 1, sizeof n);
  bytes.remove_prefix(9);
  if (n > 64) return malformed();
  Members out;
  for (uint64_t i = 0; i < n; ++i) {
    Member member;
    if (bytes.size() < sizeof member.id) return malformed();
    std::memcpy(&member.id, bytes.data(), sizeof member.id);
    bytes.remove_prefix(sizeof member.id);
    const size_t end = bytes.find('\0');
    if (end == std::string_view::npos || bytes.size() < end + 2 ||
        !parse_address(bytes.substr(0, end), &member))
      return malformed();
    const auto role = static_cast<uint8_t>(bytes[end + 1]);
    if (role > kSpare) return malformed();
    member.voter = role == kVoter;
    bytes.remove_prefix(end + 2);
    out.all.push_back(std::move(member));
  }
  return out;
}

bool same_wish(const MemberChange& a, const MemberChange& b) {
  return a.action == b.action && a.id == b.id && a.host == b.host && a.port == b.port;
}

bool keeps_majority(const MemberView& view, uint64_t leaving) {
  size_t voters = 0;
  size_t reached = 0;
  for (const Member& member : view.members.all) {
    if (!member.voter || member.id == leaving) continue;
    ++voters;
    if (view.connected.count(member.id) != 0) ++reached;
  }
  return 2 * reached > voters;
}

MemberPlan plan_change(const MemberView& view, const MemberChange& wish) {
  if (wish.id == 0)
    return refuse(absl::InvalidArgumentError("a controller's id is a number above 0"));
  const bool needs_address = wish.action == MemberChange::kAdd;
  const bool has_address = !wish.host.empty() && wish.port != 0;
  if ((needs_address && !has_address) || wish.host.empty() != (wish.port == 0) ||
      wish.host.size() > 255 || wish.host.find('/') != std::string::npos)
    return refuse(absl::InvalidArgumentError(
        absl::StrCat("give the address of ", name(wish.id), " as ", wish.id, "=host:port")));
  switch (wish.action) {
    case MemberChange::kAdd: return plan_add(view, wish);
    case MemberChange::kRemove: return plan_remove(view, wish);
    case MemberChange::kReplace: return plan_replace(view, wish);
  }
  return refuse(absl::InvalidArgumentError("no such change of the controllers"));
}

}  // namespace xce::consensus
