// Users of this host, for running jobs as those who submitted them. I/O: the host's name services.
// Thread safe.
#ifndef XCE_WORKER_AGENT_USERS_H_
#define XCE_WORKER_AGENT_USERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace xce::worker {

struct UserOnHost {
  std::string name, home, shell;  // "" of a user that this host does not know
  std::vector<uint32_t> groups;   // with `gid` among them
};

// The user with that number, as this host knows it; groups of an unknown one are just `gid`.
UserOnHost look_up_user(uint32_t uid, uint32_t gid);

// Calls `what` with the calling thread's rights to files reduced to that user's, when this process
// runs as root; otherwise just calls it. False: the rights could not be reduced, and `what` was not
// called.
bool as_user(uint32_t uid, uint32_t gid, const std::function<void()>& what);

}  // namespace xce::worker

#endif  // XCE_WORKER_AGENT_USERS_H_
