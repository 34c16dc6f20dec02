// Who belongs to the cluster, and what a wish to change that leads to. PURE: values in, values out.
//
// The members stand in the log as configuration entries (in the Raft library's encoding), so they
// are replicated, come with every snapshot, and the newest one in the log counts from the moment it
// is there. An address in such an entry is "host:port", for those that joined later
// "host:port/TAG". The tag is drawn anew each time that a node is added or replaced: what the
// others remember of its data directory (its instance) counts for that tag only. So a node whose
// disk was lost is taken back once it has been replaced, also by those who learn of that from a
// snapshot.
#ifndef XCE_CONTROLLER_CONSENSUS_MEMBERS_H_
#define XCE_CONTROLLER_CONSENSUS_MEMBERS_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xce::consensus {

inline constexpr size_t kMaxMembers = 9;

struct Member {
  uint64_t id = 0;
  std::string host;
  uint16_t port = 0;
  uint64_t tag = 0;    // 0: a founder
  bool voter = false;  // false: it gets the log, and becomes a voter when it has caught up
};

struct Members {
  std::vector<Member> all;  // in the order of the entry, which the Raft core relies on

  const Member* find(uint64_t id) const;
  const Member* at(const std::string& host, uint16_t port) const;
  size_t voters() const;
  // The one that is to become a voter, or nullptr.
  const Member* joining() const;
};

// "host:port", "[v6]:port".
std::string address_text(const std::string& host, uint16_t port);

std::string encode_members(const Members& members);
// InvalidArgument: these bytes are no configuration.
absl::StatusOr<Members> decode_members(std::string_view bytes);

// A wish. `resent`: it may have been carried out before; `birth`: the cluster had applied that much
// when its asker began.
struct MemberChange {
  enum Action { kAdd, kRemove, kReplace } action = kAdd;
  uint64_t id = 0;
  std::string host;  // of kAdd and kReplace; kReplace may leave it empty: where it is now
  uint16_t port = 0;
  bool resent = false;
  uint64_t birth = 0;
};
// Whether two wishes are the same one, asked for twice.
bool same_wish(const MemberChange& a, const MemberChange& b);

// How things stand at the primary.
struct MemberView {
  Members members;         // of the newest configuration
  uint64_t index = 0;      // of its entry
  bool committed = false;  // that entry is applied
  uint64_t self = 0;
  std::set<uint64_t> connected;  // those that can be reached, self included
};

struct MemberPlan {
  enum Next {
    kDone,    // as wished already
    kRefuse,  // `status` says why
    kWait,    // the member is there, and becomes a voter by itself
    kRemove,  // take it out
    kAdd,     // see who answers at `member`'s address, then take it in
    kSwap     // see who answers there, take it out, then take it in again
  } next = kRefuse;
  absl::Status status;  // of kRefuse: NotFound, FailedPrecondition, Aborted (try again), Unknown
  Member member;        // of kAdd and kSwap, without a tag
};
MemberPlan plan_change(const MemberView& view, const MemberChange& wish);

// Whether more than half of the voters would be within reach without `leaving` (0: nobody leaves).
bool keeps_majority(const MemberView& view, uint64_t leaving);

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_MEMBERS_H_
