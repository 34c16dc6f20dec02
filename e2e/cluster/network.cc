#include "e2e/cluster/network.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {
namespace {

constexpr char kIp[] = "/usr/sbin/ip";
constexpr char kEnter[] = "/usr/bin/nsenter";
constexpr char kSubnet[] = "10.77.0.";
constexpr int kFirstHost = 11;
constexpr milliseconds kLimit{10000};

absl::Status shell(const std::string& words) {
  std::vector<std::string> args = absl::StrSplit(words, ' ');
  const std::string program = args.front();
  args.erase(args.begin());
  const Finished done = run(program, args);
  if (done.code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(words, ": ", done.err));
}

absl::Status all_of(const std::vector<std::string>& commands) {
  for (const std::string& command : commands)
    if (absl::Status status = shell(command); !status.ok()) return status;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> Network::make(int hosts) {
  if (unshare(CLONE_NEWNET) != 0)
    return absl::PermissionDeniedError(absl::StrCat(
        "a network of its own needs root or CAP_SYS_ADMIN: unshare: ", strerror(errno)));
  std::unique_ptr<Network> network(new Network);
  absl::Status status = all_of({absl::StrCat(kIp, " link set lo up"),
                                absl::StrCat(kIp, " link add switch type bridge"),
                                absl::StrCat(kIp, " addr add ", kSubnet, "1/24 dev switch"),
                                absl::StrCat(kIp, " link set switch up")});
  for (int host = 0; host < hosts && status.ok(); ++host) status = network->add_host(host);
  if (!status.ok()) return status;
  return network;
}

absl::Status Network::add_host(int host) {
  holders_.push_back(std::make_unique<Process>());
  Process& holder = *holders_.back();
  absl::Status status =
      holder.start({"/usr/bin/unshare", "--net", "/bin/sleep", "infinity"}, "/dev/null");
  if (!status.ok()) return status;
  const auto space = [](const std::string& of) {
    std::error_code error;
    return std::filesystem::read_symlink(absl::StrCat("/proc/", of, "/ns/net"), error).string();
  };
  const std::string pid = absl::StrCat(holder.pid());
  if (!wait_until([&] { return !space(pid).empty() && space(pid) != space("self"); }, kLimit))
    return absl::DeadlineExceededError("no network namespace for a host");
  const std::string inside = absl::StrJoin(on_host(host), " ");
  return all_of({absl::StrCat(kIp, " link add port", host, " type veth peer name card netns ", pid),
                 absl::StrCat(kIp, " link set port", host, " master switch up"),
                 absl::StrCat(inside, " ", kIp, " link set lo up"),
                 absl::StrCat(inside, " ", kIp, " addr add ", address(host), "/24 dev card"),
                 absl::StrCat(inside, " ", kIp, " link set card up")});
}

std::string Network::address(int host) const { return absl::StrCat(kSubnet, kFirstHost + host); }

std::vector<std::string> Network::on_host(int host) const {
  return {kEnter, absl::StrCat("--net=/proc/", holders_[host]->pid(), "/ns/net")};
}

absl::Status Network::set_cable(int host, const std::string& state) {
  return shell(absl::StrCat(kIp, " link set port", host, " ", state));
}

}  // namespace xce::e2e
