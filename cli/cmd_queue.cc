// xce queues, xce queue add|modify|remove|open|close|start|stop|show: the queues and who may do
// what in them.
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

struct QueueOptions {
  std::vector<std::string> names;
  std::string priority, default_time, max_time;
  std::string max_running, max_running_per_user, max_pending_per_user, max_cpus_per_user;
  std::string users, groups, preemptible;
  bool make_default = false;
  bool quiet = false;
};

// A queue as libxce takes it, with the memory that it points to, and which fields were given.
struct QueueChange {
  xce_queue_t queue{};
  uint32_t mask = 0;
  std::vector<std::string> users, groups;
  std::vector<const char*> user_names, group_names;
};

// "none" or a number; 0 stands for no limit.
absl::Status read_count(const char* option, const std::string& text, uint32_t field, uint32_t* to,
                        uint32_t* mask) {
  if (text.empty()) return absl::OkStatus();
  *mask |= field;
  *to = 0;
  if (text == "none") return absl::OkStatus();
  const auto number = parse_number(text, 0, std::numeric_limits<uint32_t>::max());
  if (!number.ok()) return of_option(option, number.status());
  *to = static_cast<uint32_t>(*number);
  return absl::OkStatus();
}

absl::Status read_time(const char* option, const std::string& text, uint32_t field, uint32_t* to,
                       uint32_t* mask) {
  if (text.empty()) return absl::OkStatus();
  *mask |= field;
  *to = 0;
  if (text == "none") return absl::OkStatus();
  const auto time = parse_duration_s(text);
  if (!time.ok()) return of_option(option, time.status());
  *to = *time;
  return absl::OkStatus();
}

// "ann,bob", or "all" for no restriction.
void read_names(const std::string& text, uint32_t field, std::vector<std::string>* names,
                std::vector<const char*>* pointers, uint32_t* mask) {
  if (text.empty()) return;
  *mask |= field;
  if (text != "all") *names = split_commas(text);
  for (const std::string& name : *names) pointers->push_back(name.c_str());
}

absl::Status read_change(const QueueOptions& options, QueueChange* change) {
  xce_queue_t& queue = change->queue;
  uint32_t* mask = &change->mask;
  queue.name = options.names[0].c_str();
  if (!options.priority.empty()) {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    const auto priority = parse_number(options.priority, -kMax, kMax);
    if (!priority.ok()) return of_option("--priority", priority.status());
    queue.priority = static_cast<int32_t>(*priority);
    *mask |= XCE_QUEUE_PRIORITY;
  }
  for (const absl::Status& status :
       {read_time("--default-time", options.default_time, XCE_QUEUE_DEFAULT_TIME,
                  &queue.default_time_s, mask),
        read_time("--max-time", options.max_time, XCE_QUEUE_MAX_TIME, &queue.max_time_s, mask),
        read_count("--max-running", options.max_running, XCE_QUEUE_MAX_RUNNING, &queue.max_running,
                   mask),
        read_count("--max-running-per-user", options.max_running_per_user,
                   XCE_QUEUE_MAX_RUNNING_PER_USER, &queue.max_running_per_user, mask),
        read_count("--max-pending-per-user", options.max_pending_per_user,
                   XCE_QUEUE_MAX_PENDING_PER_USER, &queue.max_pending_per_user, mask),
        read_count("--max-cpus-per-user", options.max_cpus_per_user, XCE_QUEUE_MAX_CPUS_PER_USER,
                   &queue.max_cpus_per_user, mask)}) {
    if (!status.ok()) return status;
  }
  read_names(options.users, XCE_QUEUE_ALLOWED_USERS, &change->users, &change->user_names, mask);
  read_names(options.groups, XCE_QUEUE_ALLOWED_GROUPS, &change->groups, &change->group_names, mask);
  queue.allowed_users = change->user_names.data();
  queue.nallowed_users = change->user_names.size();
  queue.allowed_groups = change->group_names.data();
  queue.nallowed_groups = change->group_names.size();
  if (!options.preemptible.empty()) {
    queue.preemptible = options.preemptible == "yes";
    *mask |= XCE_QUEUE_PREEMPTIBLE;
  }
  if (options.make_default) {
    queue.is_default = true;
    *mask |= XCE_QUEUE_DEFAULT;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> run_define(const Context& context, const QueueOptions& options, bool add) {
  QueueChange change;
  if (const absl::Status status = read_change(options, &change); !status.ok()) return status;
  if (!add && change.mask == 0)
    return absl::InvalidArgumentError("nothing to change; see 'xce queue modify --help'");
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const std::string& name = options.names[0];
  const auto rc = (*session)->call(
      absl::StrCat("cannot ", add ? "add" : "modify", " queue ", name), [&](xcecli_ctx_t ctx) {
        return add ? xcecli_queuectrl(ctx, XCE_QUEUE_CREATE, &change.queue)
                   : xcecli_queuemodify(ctx, &change.queue, change.mask);
      });
  if (!rc.ok()) return rc.status();
  if (context.json)
    print_json(Json{{"queues", {name}}});
  else if (!options.quiet)
    print(absl::StrCat(add ? "Added" : "Modified", " queue ", name, "\n"));
  return kOk;
}

struct Verb {
  const char* name;
  xce_queue_action_t action;
  const char* done;
  const char* help;
};
constexpr Verb kVerbs[] = {
    {"remove", XCE_QUEUE_REMOVE, "Removed", "remove queues that have no jobs left"},
    {"open", XCE_QUEUE_OPEN, "Opened", "let people submit to queues again"},
    {"close", XCE_QUEUE_CLOSE, "Closed", "take no more submissions; jobs that are there still run"},
    {"start", XCE_QUEUE_START, "Started", "let jobs of stopped queues start again"},
    {"stop", XCE_QUEUE_STOP, "Stopped", "start no more jobs of queues; running ones go on"},
};

absl::StatusOr<int> run_verb(const Context& context, const QueueOptions& options,
                             const Verb& verb) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  absl::Status last;
  std::vector<std::string> changed;
  for (const std::string& name : options.names) {
    xce_queue_t queue{};
    queue.name = name.c_str();
    const auto rc = (*session)->call(
        absl::StrCat("cannot ", verb.name, " queue ", name),
        [&](xcecli_ctx_t ctx) { return xcecli_queuectrl(ctx, verb.action, &queue); });
    if (rc.ok()) {
      changed.push_back(name);
      if (!context.json && !options.quiet) print(absl::StrCat(verb.done, " queue ", name, "\n"));
      continue;
    }
    if (!last.ok()) complain(std::string(last.message()));
    last = rc.status();
  }
  if (context.json) print_json(Json{{"queues", changed}});
  if (!last.ok()) return last;
  return kOk;
}

// ---- listing

class QueueList {
 public:
  absl::Status read(Session& session) {
    const auto rc = session.call("cannot list queues", [&](xcecli_ctx_t ctx) {
      return xcecli_queuelist(ctx, &queues_, &n_);
    });
    return rc.status();
  }
  ~QueueList() { xce_free_queues(queues_, n_); }
  QueueList() = default;
  QueueList(const QueueList&) = delete;
  QueueList& operator=(const QueueList&) = delete;
  const xce_queue_t* begin() const { return queues_; }
  const xce_queue_t* end() const { return queues_ + n_; }

 private:
  xce_queue_t* queues_ = nullptr;
  size_t n_ = 0;
};

std::string time_words(uint32_t s) {
  return s == 0 ? std::string("-") : clock_duration(static_cast<int64_t>(s) * 1000);
}
std::string count_or(uint32_t n, const char* none) {
  return n == 0 ? std::string(none) : absl::StrCat(n);
}

absl::StatusOr<int> run_list(const Context& context) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  QueueList queues;
  if (const absl::Status status = queues.read(**session); !status.ok()) return status;
  if (context.json) {
    Json list = Json::array();
    for (const xce_queue_t& queue : queues) list.push_back(queue_json(queue));
    print_json(Json{{"queues", list}});
    return kOk;
  }
  Table table({{"QUEUE", Align::kLeft, 30},
               {"PRIORITY", Align::kRight},
               {"OPEN"},
               {"STARTS JOBS"},
               {"PENDING", Align::kRight},
               {"RUNNING", Align::kRight},
               {"MAX TIME", Align::kRight},
               {"DEFAULT TIME", Align::kRight}});
  for (const xce_queue_t& queue : queues) {
    table.add_row({absl::StrCat(queue.name, queue.is_default ? " (default)" : ""),
                   absl::StrCat(queue.priority),
                   Cell(queue.open ? "yes" : "no", queue.open ? Colour::kGreen : Colour::kRed),
                   Cell(queue.active ? "yes" : "no", queue.active ? Colour::kGreen : Colour::kRed),
                   absl::StrCat(queue.pending), absl::StrCat(queue.running),
                   time_words(queue.max_time_s), time_words(queue.default_time_s)});
  }
  print(table.render(terminal_width(), use_colour()));
  return kOk;
}

std::string names_words(const char* const* names, size_t n) {
  return absl::StrJoin(std::vector<std::string>(names, names + n), ", ");
}

std::string sheet_of(const xce_queue_t& queue) {
  std::string out =
      absl::StrCat("Queue ", queue.name, queue.is_default ? " (the default)" : "", "\n");
  const auto line = [&out](const char* key, const std::string& value) {
    absl::StrAppend(&out, "  ", key, std::string(22 - std::string(key).size(), ' '), value, "\n");
  };
  line("Open", queue.open ? "yes" : "no: takes no submissions");
  line("Starts jobs", queue.active ? "yes" : "no: stopped");
  line("Jobs", absl::StrCat(queue.pending, " pending, ", queue.running, " running"));
  line("Priority", absl::StrCat(queue.priority));
  line("Default time", queue.default_time_s == 0 ? "none" : time_words(queue.default_time_s));
  line("Longest time", queue.max_time_s == 0 ? "any" : time_words(queue.max_time_s));
  line("Running jobs", count_or(queue.max_running, "any number"));
  line("Running jobs a user", count_or(queue.max_running_per_user, "any number"));
  line("Cpus a user", count_or(queue.max_cpus_per_user, "any number"));
  line("Pending jobs a user", count_or(queue.max_pending_per_user, "any number"));
  if (queue.nallowed_users + queue.nallowed_groups == 0) line("For", "everybody");
  if (queue.nallowed_users > 0)
    line("For users", names_words(queue.allowed_users, queue.nallowed_users));
  if (queue.nallowed_groups > 0)
    line("For groups", names_words(queue.allowed_groups, queue.nallowed_groups));
  line("Gives way", queue.preemptible ? "to queues of higher priority" : "no");
  return out;
}

absl::StatusOr<int> run_show(const Context& context, const QueueOptions& options) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  QueueList queues;
  if (const absl::Status status = queues.read(**session); !status.ok()) return status;
  for (const xce_queue_t& queue : queues) {
    if (queue.name != options.names[0]) continue;
    if (context.json)
      print_json(queue_json(queue));
    else
      print(printable(sheet_of(queue)));
    return kOk;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no queue '", options.names[0], "'; see 'xce queues'"));
}

void add_fields(CLI::App* app, QueueOptions* options) {
  app->add_option("NAME", options->names, "the queue")->required()->expected(1);
  app->add_option("-p,--priority", options->priority, "its jobs go before those of lower ones")
      ->type_name("N");
  app->add_option("--default-time", options->default_time,
                  "time limit of jobs that ask for none: 90, 10:00, 2h, or none")
      ->type_name("TIME");
  app->add_option("--max-time", options->max_time, "longest time limit that a job may ask for")
      ->type_name("TIME");
  app->add_option("--max-running", options->max_running, "running jobs at once, or none")
      ->type_name("N");
  app->add_option("--max-running-per-user", options->max_running_per_user,
                  "running jobs of one user at once")
      ->type_name("N");
  app->add_option("--max-cpus-per-user", options->max_cpus_per_user,
                  "cpus that the running jobs of one user hold at once")
      ->type_name("N");
  app->add_option("--max-pending-per-user", options->max_pending_per_user,
                  "waiting jobs of one user; more submissions are refused")
      ->type_name("N");
  app->add_option("--allow-users", options->users, "only these may submit: ann,bob, or all")
      ->type_name("LIST");
  app->add_option("--allow-groups", options->groups,
                  "members of these may submit, too: physics,staff, or all")
      ->type_name("LIST");
  app->add_option("--preemptible", options->preemptible,
                  "its running jobs are requeued when jobs of queues of higher priority need their "
                  "hosts")
      ->type_name("yes|no")
      ->check(CLI::IsMember({"yes", "no"}));
  app->add_flag("--default", options->make_default, "where jobs go that name no queue");
  app->add_flag("--quiet", options->quiet, "print nothing");
}

}  // namespace

void register_queues(Registry* registry) {
  Command& queues = registry->add("queues", "list the queues", "  xce queues");
  queues.run = run_list;

  Command& queue =
      registry->add("queue", "one queue: show, add, modify, remove, open, close, start, stop",
                    "  xce queue add night --priority -10 --max-time 8h\n"
                    "  xce queue modify lab --allow-groups physics\n"
                    "  xce queue show night");
  queue.app->require_subcommand(1);
  auto added = std::make_shared<QueueOptions>();
  Command& add = registry->add("add", "a new queue",
                               "  xce queue add night --priority -10 --preemptible yes", queue.app);
  add_fields(add.app, added.get());
  add.run = [added](const Context& c) { return run_define(c, *added, true); };

  auto modified = std::make_shared<QueueOptions>();
  Command& modify = registry->add("modify", "change what is given of a queue, and nothing else",
                                  "  xce queue modify night --max-running 20", queue.app);
  add_fields(modify.app, modified.get());
  modify.run = [modified](const Context& c) { return run_define(c, *modified, false); };

  auto shown = std::make_shared<QueueOptions>();
  Command& show = registry->add("show", "all about a queue", "  xce queue show night", queue.app);
  show.app->add_option("NAME", shown->names, "the queue")->required()->expected(1);
  show.run = [shown](const Context& c) { return run_show(c, *shown); };

  for (const Verb& verb : kVerbs) {
    auto options = std::make_shared<QueueOptions>();
    Command& command = registry->add(verb.name, verb.help,
                                     absl::StrCat("  xce queue ", verb.name, " night"), queue.app);
    command.app->add_option("NAME", options->names, "queues")->required();
    command.app->add_flag("--quiet", options->quiet, "print nothing");
    command.run = [options, &verb](const Context& c) { return run_verb(c, *options, verb); };
  }
}

}  // namespace xce::cli
