// The groups of users, as the system's user database has them. I/O: may read files or ask a
// directory service. Thread: the client I/O thread.
#ifndef XCE_CONTROLLER_SERVICE_GROUPS_H_
#define XCE_CONTROLLER_SERVICE_GROUPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xce::service {

// Names of all groups of a user; empty for one that this machine does not know.
std::vector<std::string> look_up_groups(const std::string& user);

// Remembers each answer for a minute.
class GroupCache {
 public:
  using LookUp = std::vector<std::string> (*)(const std::string& user);
  explicit GroupCache(LookUp look_up = &look_up_groups) : look_up_(look_up) {}

  const std::vector<std::string>& of(const std::string& user, uint64_t now_ms);

 private:
  static constexpr uint64_t kKeptMs = 60'000;
  static constexpr size_t kMaxUsers = 10'000;
  struct Entry {
    std::vector<std::string> groups;
    uint64_t read_ms = 0;
  };
  const LookUp look_up_;
  std::map<std::string, Entry> users_;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_GROUPS_H_
