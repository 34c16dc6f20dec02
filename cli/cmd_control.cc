// xce kill, hold, release, suspend, resume, requeue, modify: what is done to jobs.
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"

namespace xce::cli {
namespace {

struct ControlOptions {
  std::vector<std::string> ids;
  std::string signal, op_key;
  bool quiet = false;
  std::string priority, time, name, queue;
};

struct Verb {
  const char* name;
  xce_jobctrl_action_t action;
  const char* done;  // "Killing" job 17
  const char* help;
  const char* examples;
};

constexpr Verb kVerbs[] = {
    {"kill", XCE_JOBCTRL_KILL, "Killing", "end jobs: SIGTERM, then SIGKILL",
     "  xce kill 17            a job, or a whole array\n"
     "  xce kill 20[3] 20[5-9] tasks of an array\n"
     "  xce kill -s USR1 17    only send this signal"},
    {"hold", XCE_JOBCTRL_HOLD, "Held", "keep pending jobs from starting", "  xce hold 17"},
    {"release", XCE_JOBCTRL_RELEASE, "Released", "let held jobs start", "  xce release 17"},
    {"suspend", XCE_JOBCTRL_SUSPEND, "Suspending",
     "stop running jobs for a while; their memory stays", "  xce suspend 17"},
    {"resume", XCE_JOBCTRL_RESUME, "Resuming", "let suspended jobs go on", "  xce resume 17"},
    {"requeue", XCE_JOBCTRL_REQUEUE, "Requeued", "end jobs and put them back into the queue",
     "  xce requeue 17"},
};

absl::Status control_each(Session& session, const Verb& verb, uint32_t signal,
                          const std::vector<const Resolved*>& targets, bool arrays,
                          const std::string& op_key, std::vector<const Resolved*>* changed,
                          int* jobs_changed);

// Gives this thread's next write the operation id of the key and the job, so that a command that is
// typed or run again changes nothing the second time. An empty key: none.
void set_op_id(xcecli_ctx_t ctx, const std::string& key, const std::string& job) {
  xce_op_id_t id;
  if (!key.empty() && xce_op_id_of_key(absl::StrCat(key, "/", job).c_str(), &id) == 0)
    xcecli_set_op_id(ctx, &id);
}

// One call for all; when that is refused and there are several, one for each, so that each gets its
// own answer.
absl::Status control(Session& session, const Verb& verb, uint32_t signal,
                     const std::vector<const Resolved*>& targets, bool arrays,
                     const std::string& op_key, std::vector<const Resolved*>* changed,
                     int* jobs_changed) {
  if (targets.empty()) return absl::OkStatus();
  if (!op_key.empty() && targets.size() > 1)
    return control_each(session, verb, signal, targets, arrays, op_key, changed, jobs_changed);
  std::vector<uint64_t> ids;
  ids.reserve(targets.size());
  for (const Resolved* target : targets) ids.push_back(target->id);
  const std::string what =
      absl::StrCat("cannot ", verb.name, " ",
                   targets.size() == 1 ? "job " + targets[0]->text : std::string("these jobs"));
  const auto rc = session.call(what, [&](xcecli_ctx_t ctx) {
    set_op_id(ctx, op_key, targets[0]->text);
    return xcecli_jobctrl(ctx, ids.data(), ids.size(), verb.action, signal, arrays);
  });
  if (rc.ok()) {
    changed->insert(changed->end(), targets.begin(), targets.end());
    *jobs_changed += *rc;
    return absl::OkStatus();
  }
  const absl::StatusCode code = rc.status().code();
  if (targets.size() == 1 || code == absl::StatusCode::kUnavailable ||
      code == absl::StatusCode::kUnknown)
    return rc.status();
  return control_each(session, verb, signal, targets, arrays, op_key, changed, jobs_changed);
}

absl::Status control_each(Session& session, const Verb& verb, uint32_t signal,
                          const std::vector<const Resolved*>& targets, bool arrays,
                          const std::string& op_key, std::vector<const Resolved*>* changed,
                          int* jobs_changed) {
  absl::Status last;
  for (const Resolved* target : targets) {
    const absl::Status status =
        control(session, verb, signal, {target}, arrays, op_key, changed, jobs_changed);
    if (status.ok()) continue;
    if (!last.ok()) complain(std::string(last.message()));
    last = status;
  }
  return last;
}

absl::StatusOr<int> run_control(const Context& context, const Verb& verb,
                                const ControlOptions& options) {
  const auto refs = parse_job_refs(options.ids);
  if (!refs.ok()) return refs.status();
  uint32_t signal = 0;
  if (!options.signal.empty()) {
    const auto parsed = parse_signal(options.signal);
    if (!parsed.ok()) return parsed.status();
    signal = *parsed;
  }
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  std::vector<std::string> missing;
  const auto targets = resolve(**session, *refs, &missing);
  if (!targets.ok()) return targets.status();
  std::vector<const Resolved*> singles, arrays, changed, ended;
  for (const Resolved& target : *targets) {
    if (target.array) {
      arrays.push_back(&target);
    } else if (verb.action == XCE_JOBCTRL_KILL && target.state >= XCE_JOB_COMPLETED) {
      ended.push_back(&target);  // as wanted already
    } else {
      singles.push_back(&target);
    }
  }
  int jobs_changed = 0;
  absl::Status status =
      control(**session, verb, signal, singles, false, options.op_key, &changed, &jobs_changed);
  const absl::Status arrays_status =
      control(**session, verb, signal, arrays, true, options.op_key, &changed, &jobs_changed);
  if (status.ok()) {
    status = arrays_status;
  } else if (!arrays_status.ok()) {
    complain(std::string(arrays_status.message()));
  }
  if (context.json) {
    Json out;
    out["jobs"] = Json::array();
    for (const Resolved* target : changed)
      out["jobs"].push_back(Json{{"id", target->id}, {"job", target->text}});
    out["changed"] = jobs_changed;
    out["missing"] = missing;
    print_json(out);
  } else if (!options.quiet) {
    std::string text;
    for (const Resolved* target : changed) {
      absl::StrAppend(&text, verb.done, target->array ? " job array " : " job ", target->text,
                      "\n");
    }
    for (const Resolved* target : ended) {
      absl::StrAppend(&text, "Job ", target->text, " has ended already (",
                      state_word(target->state), ")\n");
    }
    print(text);
  }
  if (!missing.empty()) {
    if (!status.ok()) complain(std::string(status.message()));
    std::string names;
    for (const std::string& name : missing)
      absl::StrAppend(&names, names.empty() ? "" : ", ", name);
    return absl::NotFoundError(absl::StrCat("there is no job ", names, "; see 'xce jobs --all'"));
  }
  if (!status.ok()) return status;
  return kOk;
}

absl::StatusOr<int> run_modify(const Context& context, const ControlOptions& options) {
  const auto refs = parse_job_refs(options.ids);
  if (!refs.ok()) return refs.status();
  xce_job_spec_t fields{};
  xce_job_spec_init(&fields);
  uint32_t mask = 0;  // as client.capnp's modifyMask
  if (!options.priority.empty()) {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    const auto priority = parse_number(options.priority, -kMax, kMax);
    if (!priority.ok()) return of_option("--priority", priority.status());
    fields.priority = static_cast<int32_t>(*priority);
    mask |= 1;
  }
  if (!options.time.empty()) {
    const auto time = parse_duration_s(options.time);
    if (!time.ok()) return of_option("--time", time.status());
    fields.time_limit_s = *time;
    mask |= 2;
  }
  if (!options.name.empty()) {
    fields.name = options.name.c_str();
    mask |= 4;
  }
  if (!options.queue.empty()) {
    fields.queue = options.queue.c_str();
    mask |= 8;
  }
  if (mask == 0)
    return absl::InvalidArgumentError(
        "nothing to change; give --priority, --time, --name or --queue");
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  std::vector<std::string> missing;
  const auto targets = resolve(**session, *refs, &missing);
  if (!targets.ok()) return targets.status();
  std::vector<uint64_t> ids;
  for (const Resolved& target : *targets) {
    if (!target.array) {
      ids.push_back(target.id);
      continue;
    }
    xce_job_filter_t filter{};
    filter.array_id = target.id;
    filter.states = kAliveStates;
    const absl::Status status = (*session)->all_jobs(filter, [&](const xce_job_t& job) {
      ids.push_back(job.id);
      return true;
    });
    if (!status.ok()) return status;
  }
  if (!missing.empty())
    return absl::NotFoundError(
        absl::StrCat("there is no job ", missing[0], "; see 'xce jobs --all'"));
  int modified = 0;
  const size_t step = options.op_key.empty() ? ids.size() : 1;
  for (size_t at = 0; at < ids.size(); at += step) {
    const auto rc = (*session)->call("cannot modify", [&](xcecli_ctx_t ctx) {
      set_op_id(ctx, options.op_key, absl::StrCat(ids[at]));
      return xcecli_jobmodify(ctx, ids.data() + at, step, &fields, mask);
    });
    if (!rc.ok()) return rc.status();
    modified += *rc;
  }
  if (context.json) {
    print_json(Json{{"changed", modified}});
  } else if (!options.quiet) {
    for (const Resolved& target : *targets) print(absl::StrCat("Modified job ", target.text, "\n"));
  }
  return kOk;
}

void add_op_key(CLI::App* app, std::string* key) {
  app->add_option("--op-key", *key,
                  "your own name for this request: the same command with the same key, run again "
                  "within an hour, changes nothing")
      ->type_name("KEY");
}

}  // namespace

void register_control(Registry* registry) {
  for (const Verb& verb : kVerbs) {
    auto options = std::make_shared<ControlOptions>();
    Command& command = registry->add(verb.name, verb.help, verb.examples);
    command.app->add_option("ID", options->ids, "jobs, arrays, or tasks (17[3])")->required();
    command.app->add_flag("--quiet", options->quiet, "print nothing");
    add_op_key(command.app, &options->op_key);
    if (verb.action == XCE_JOBCTRL_KILL) {
      command.app
          ->add_option("-s,--signal", options->signal,
                       "send this signal and nothing else: USR1, 10")
          ->type_name("SIGNAL");
    }
    command.run = [options, &verb](const Context& context) {
      return run_control(context, verb, *options);
    };
  }
  auto options = std::make_shared<ControlOptions>();
  Command& modify = registry->add("modify", "change jobs that have not ended",
                                  "  xce modify 17 --priority 10 --time 2h");
  modify.app->add_option("ID", options->ids, "jobs, arrays, or tasks (17[3])")->required();
  modify.app->add_option("-p,--priority", options->priority, "higher starts earlier")
      ->type_name("N");
  modify.app->add_option("-t,--time", options->time, "time limit: 90, 10:00, 2h")
      ->type_name("TIME");
  modify.app->add_option("-n,--name", options->name, "name")->type_name("NAME");
  modify.app->add_option("-q,--queue", options->queue, "queue")->type_name("QUEUE");
  modify.app->add_flag("--quiet", options->quiet, "print nothing");
  add_op_key(modify.app, &options->op_key);
  modify.run = [options](const Context& context) { return run_modify(context, *options); };
}

}  // namespace xce::cli
