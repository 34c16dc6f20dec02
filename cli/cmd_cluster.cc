// xce hosts, drain, undrain, cluster: the machines rather than the jobs.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr int kStatusMs = 5000;  // until 'xce cluster status' asks each controller by itself
constexpr int kProbeMs = 500;    // for each controller, when none serves

struct StatusDeleter {
  void operator()(xce_cluster_status_t* status) const { xce_free_cluster_status(status); }
};
using StatusPtr = std::unique_ptr<xce_cluster_status_t, StatusDeleter>;

// Raft's words in those of the rest of XCE.
std::string role_word(const std::string& role) {
  return role == "leader" ? "primary" : role == "follower" ? "standby" : role;
}

absl::StatusOr<int> run_hosts(const Context& context) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  xce_host_t* raw = nullptr;
  size_t n = 0;
  const auto rc = (*session)->call(
      "cannot list hosts", [&](xcecli_ctx_t ctx) { return xcecli_workerlist(ctx, &raw, &n); });
  if (!rc.ok()) return rc.status();
  const auto release = [&n](xce_host_t* hosts) { xce_free_hosts(hosts, n); };
  const std::unique_ptr<xce_host_t, decltype(release)> hosts(raw, release);
  if (context.json) {
    Json list = Json::array();
    for (size_t i = 0; i < n; ++i) list.push_back(host_json(raw[i]));
    print_json(Json{{"hosts", list}});
    return kOk;
  }
  Table table({{"HOST", Align::kLeft, 40},
               {"STATE"},
               {"CPUS", Align::kRight},
               {"MEMORY", Align::kRight},
               {"GRES"},
               {"JOBS", Align::kRight},
               {"REASON"}});
  for (size_t i = 0; i < n; ++i) {
    const xce_host_t& host = raw[i];
    const std::string gres =
        host.attrs.ngres == 0 ? "-" : gres_words(host.attrs.gres, host.attrs.ngres);
    table.add_row(
        {host.attrs.name, Cell(host_state_word(host.state), host_colour(host.state)),
         absl::StrCat(host.used_cpus, "/", host.attrs.cpus),
         absl::StrCat(memory_words(host.used_memory_mb), "/", memory_words(host.attrs.memory_mb)),
         gres, absl::StrCat(host.running_jobs), host.drain_reason});
  }
  print(table.render(terminal_width(), use_colour()));
  if (n == 0) complain("no host has joined yet; start xcecd on a machine");
  return kOk;
}

absl::StatusOr<int> run_hostctrl(const Context& context, xce_host_action_t action,
                                 const std::vector<std::string>& hosts, const std::string& reason) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  absl::Status last;
  std::vector<std::string> changed;
  for (const std::string& host : hosts) {
    const std::string what =
        absl::StrCat("cannot ", action == XCE_HOST_DRAIN ? "drain " : "undrain ", host);
    const auto rc = (*session)->call(what, [&](xcecli_ctx_t ctx) {
      return xcecli_hostctrl(ctx, action, host.c_str(), reason.empty() ? nullptr : reason.c_str());
    });
    if (rc.ok()) {
      changed.push_back(host);
      if (!context.json) {
        print(action == XCE_HOST_DRAIN
                  ? absl::StrCat("Draining ", host, ": no job starts there; running ones go on\n")
                  : absl::StrCat("Undrained ", host, ": jobs may start there\n"));
      }
      continue;
    }
    if (!last.ok()) complain(std::string(last.message()));
    last = rc.status();
  }
  if (context.json) print_json(Json{{"hosts", changed}});
  if (!last.ok()) return last;
  return kOk;
}

absl::StatusOr<int> run_host_remove(const Context& context, const std::string& host, bool lost) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto rc = (*session)->call(absl::StrCat("cannot remove ", host), [&](xcecli_ctx_t ctx) {
    return xcecli_hostctrl(ctx, lost ? XCE_HOST_REMOVE_LOST : XCE_HOST_REMOVE, host.c_str(),
                           nullptr);
  });
  if (!rc.ok()) return rc.status();
  if (context.json)
    print_json(Json{{"hosts", {host}}});
  else
    print(absl::StrCat("Removed ", host, lost ? ": its jobs are given up\n" : "\n"));
  return kOk;
}

std::string status_text(const xce_cluster_status_t& s, int64_t now_ms) {
  std::string out;
  const bool colour = use_colour();
  if (s.leader_id == 0) {
    absl::StrAppend(&out, "Primary    ", paint("none", Colour::kRed, colour), "\n");
  } else {
    absl::StrAppend(&out, "Primary    controller ", s.leader_id, ", term ", s.term,
                    s.ready ? "" : " (not ready yet)", "\n");
  }
  absl::StrAppend(&out, "Log        commit ", s.commit, ", applied ", s.applied, ", last ",
                  s.last_index, "\n");
  if (s.last_election_ms != 0) {
    absl::StrAppend(&out, "Elected    ", relative_time(now_ms, s.last_election_ms), ", in ",
                    long_duration(s.last_election_took_ms), "\n");
  }
  absl::StrAppend(&out, "Jobs       ", s.jobs_pending, " pending, ", s.jobs_running, " running, ",
                  s.jobs_finished, " ended\n");
  const std::string scheduler = printable(s.scheduler);
  absl::StrAppend(&out, "Scheduler  ",
                  scheduler.empty()
                      ? paint("none: jobs wait until an xce_scheduler joins", Colour::kRed, colour)
                      : scheduler,
                  "\n");
  absl::StrAppend(&out, "Disk       ", printable(s.disk), "\n\n");
  Table table({{"CONTROLLER"},
               {"ADDRESS"},
               {"ROLE"},
               {"CONNECTED"},
               {"MATCH", Align::kRight},
               {"BEHIND", Align::kRight},
               {"LAST HEARD"}});
  for (size_t i = 0; i < s.nnodes; ++i) {
    const xce_node_t& node = s.nodes[i];
    const bool self = node.id == s.node_id;
    const bool up = self || node.connected;
    const uint64_t match = self ? s.last_index : node.match_index;
    table.add_row({absl::StrCat(node.id), absl::StrCat(node.host, ":", node.port),
                   role_word(node.id == s.leader_id ? "leader" : node.role),
                   Cell(up ? "yes" : "no", up ? Colour::kGreen : Colour::kRed), absl::StrCat(match),
                   absl::StrCat(s.last_index > match ? s.last_index - match : 0),
                   self                       ? std::string("-")
                   : node.last_contact_ms < 0 ? std::string("never")
                                              : long_duration(node.last_contact_ms) + " ago"});
  }
  return out + table.render(terminal_width(), colour);
}

// What a controller is doing, from the class of libxce's last attempt on it.
std::string condition_of(const std::string& trail) {
  const size_t at = trail.rfind("; ");
  const std::string last =
      at == std::string::npos ? trail : trail.substr(at + 2);  // "host:port CLASS at 7 ms"
  const size_t from = last.find(' ');
  if (from == std::string::npos) return "unreachable";
  const std::string name = last.substr(from + 1, last.find(" at ", from) - from - 1);
  if (name == "ECONNREFUSED") return "not running: nothing listens there";
  if (name == "E_XCE_NOMASTER") return "runs, knows no primary";
  if (name == "E_XCE_NOT_READY") return "runs, is electing a primary or catching up";
  if (name == "E_XCE_STANDBY" || name == "E_XCE_REDIRECT") return "runs, follows a primary";
  if (name == "ETIMEDOUT") return "does not answer: paused, overloaded or cut off";
  return name;
}

// Asks each controller by itself, when none serves: which are there, and what are they doing?
std::string each_controller(const Connection& connection) {
  Table table({{"ADDRESS"}, {"CONDITION"}});
  for (const std::string& address : split_commas(connection.masters.text)) {
    Connection alone = connection;
    alone.masters.text = address;
    alone.deadline_ms = std::min(connection.deadline_ms, kProbeMs);
    alone.notice = false;
    const auto session = Session::open(alone);
    if (session.ok()) {
      table.add_row({address, Cell("primary", Colour::kGreen)});
      continue;
    }
    xce_error_t last{};
    xcecli_last_error(&last);
    const std::string condition = condition_of(last.trail);
    table.add_row({address, Cell(condition, condition.rfind("runs", 0) == 0 ? Colour::kYellow
                                                                            : Colour::kRed)});
  }
  return table.render(terminal_width(), use_colour());
}

absl::StatusOr<int> run_status(const Context& context) {
  Connection connection = context.connection;
  // Whoever asks wants to know what is wrong now; an election is over by then.
  if (!connection.deadline_given) connection.deadline_ms = kStatusMs;
  auto session = Session::open(connection);
  absl::Status failure = session.status();
  if (session.ok()) {
    xce_cluster_status_t* raw = nullptr;
    const auto rc = (*session)->call("cannot tell the cluster's status", [&](xcecli_ctx_t ctx) {
      return xcecli_clusterstatus(ctx, &raw);
    });
    failure = rc.status();
    if (rc.ok()) {
      const StatusPtr status(raw);
      if (context.json) {
        print_json(cluster_json(*status));
        return kOk;
      }
      const auto now = (*session)->now_ms();
      if (!now.ok()) return now.status();
      print(status_text(*status, *now));
      return kOk;
    }
  }
  if (failure.code() != absl::StatusCode::kUnavailable) return failure;
  if (!context.json) print(each_controller(context.connection));
  return absl::UnavailableError(
      "there is no primary now; more than half of the controllers must run and reach one another");
}

absl::StatusOr<int> run_transfer(const Context& context, uint64_t to) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto rc = (*session)->call("cannot hand the primary role over", [&](xcecli_ctx_t ctx) {
    return xcecli_memberctrl(ctx, XCE_MEMBER_TRANSFER, to, nullptr, 0);
  });
  if (!rc.ok()) return rc.status();
  // Who it is now is only news: the hand-over itself has succeeded.
  xce_cluster_status_t* raw = nullptr;
  const auto asked = (*session)->call(
      "cannot ask who leads", [&](xcecli_ctx_t ctx) { return xcecli_clusterstatus(ctx, &raw); });
  const StatusPtr status(raw);
  const uint64_t leader = asked.ok() ? status->leader_id : to;
  if (context.json) {
    print_json(Json{{"leader_id", leader}, {"term", asked.ok() ? status->term : 0}});
  } else if (leader == 0) {
    print("Handed the primary role over\n");
  } else {
    print(absl::StrCat("Handed the primary role over: controller ", leader, " is the primary",
                       asked.ok() ? absl::StrCat(", term ", status->term) : "", "\n"));
  }
  return kOk;
}

}  // namespace

void register_cluster(Registry* registry) {
  Command& hosts = registry->add("hosts", "list the hosts that run jobs",
                                 "  xce hosts\n  xce hosts --output json");
  hosts.run = run_hosts;

  struct HostOptions {
    std::vector<std::string> hosts;
    std::string reason;
  };
  auto options = std::make_shared<HostOptions>();
  Command& drain = registry->add("drain", "start no more jobs on hosts; running ones go on",
                                 "  xce drain n1 --reason 'new disk'");
  drain.app->add_option("HOST", options->hosts, "hosts")->required();
  drain.app->add_option("--reason", options->reason, "why, for others to read")->type_name("TEXT");
  drain.run = [options](const Context& c) {
    return run_hostctrl(c, XCE_HOST_DRAIN, options->hosts, options->reason);
  };
  auto back = std::make_shared<HostOptions>();
  Command& undrain = registry->add("undrain", "let jobs start on hosts again", "  xce undrain n1");
  undrain.app->add_option("HOST", back->hosts, "hosts")->required();
  undrain.run = [back](const Context& c) {
    return run_hostctrl(c, XCE_HOST_RESUME, back->hosts, "");
  };

  Command& host = registry->add("host", "a host's place in the cluster", "  xce host remove n1");
  host.app->require_subcommand(1);
  struct RemoveOptions {
    std::string host;
    bool lost = false;
  };
  auto gone = std::make_shared<RemoveOptions>();
  Command& remove = registry->add("remove", "forget a host, and free its name for another worker",
                                  "  xce host remove n1          a host that runs nothing\n"
                                  "  xce host remove n1 --lost   one that does not answer: its "
                                  "jobs end as LOST, or are requeued "
                                  "if they asked for it",
                                  host.app);
  remove.app->add_option("HOST", gone->host, "the host")->required();
  remove.app->add_flag(
      "--lost", gone->lost,
      "it is lost for good, and so are its jobs: make sure that it is switched off");
  remove.run = [gone](const Context& c) { return run_host_remove(c, gone->host, gone->lost); };

  Command& cluster = registry->add("cluster", "the controllers", "  xce cluster status");
  cluster.app->require_subcommand(1);
  Command& status = registry->add("status", "who leads, who is connected, how far behind",
                                  "  xce cluster status", cluster.app);
  status.run = run_status;
  auto to = std::make_shared<uint64_t>(0);
  Command& transfer = registry->add(
      "transfer", "hand the primary role over; nothing is lost and nobody sees an error",
      "  xce cluster transfer\n  xce cluster transfer --to 2", cluster.app);
  transfer.app
      ->add_option("--to", *to, "id of the controller that takes over (default: the best one)")
      ->type_name("ID")
      ->check(CLI::PositiveNumber);
  transfer.run = [to](const Context& c) { return run_transfer(c, *to); };
  register_members(registry, cluster.app);
}

}  // namespace xce::cli
