// xce submit and xce run: a script or a command becomes a job.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/follower.h"
#include "cli/labels.h"
#include "cli/script.h"
#include "cli/submit_options.h"
#include "cli/terminal.h"
#include "cli/waiter.h"

extern char** environ;  // POSIX

namespace xce::cli {
namespace {

struct SubmitCommand {
  SubmitOptions options;
  bool wait = false;
  bool quiet = false;
  std::string job;                 // to run inside; "": a job of its own
  std::vector<std::string> hosts;  // of that job
  bool all_hosts = false;
};

constexpr char kSubmitExamples[] =
    "  xce submit job.sh in.txt            run a script with an argument\n"
    "  xce submit -c 2 -m 2G -t 10m job.sh two processors, 2 GiB, ten minutes\n"
    "  xce submit -a 0-9%2 job.sh          ten tasks, two at once; XCE_ARRAY_INDEX tells which\n"
    "  xce submit --afterok 17 next.sh     when job 17 has completed\n"
    "  xce submit -- gcc -O2 a.c           run a command\n"
    "  xce submit --quiet --wait job.sh    exit with the job's own exit code\n"
    "A script may begin with lines such as\n"
    "  #XCE --cpus 2 --time 10:00 --name simulation\n"
    "with the same options; the command line wins. Options go before the script; what follows is "
    "the script's.\n"
    "'--output json' prints JSON here too (write ./json for a file of that name); so does --json.";

constexpr char kRunExamples[] =
    "  xce run -- make test                run a command on the cluster, see its output, exit with "
    "its code\n"
    "  xce run -c 4 job.sh in.txt          a script likewise\n"
    "  xce run --job 17 -- nvidia-smi      inside job 17, on its first host\n"
    "  xce run --job 17 --all-hosts -- sh -c 'echo $XCE_HOST $XCE_HOST_INDEX'\n"
    "                                      on each of its hosts; exits with the highest code\n"
    "With --job the command starts at once, has what the job has (processors, memory, user, "
    "environment, directory)\n"
    "and ends with it at the latest. Ctrl-C kills the job and exits with 130; a second Ctrl-C "
    "leaves at once. To let a job run on "
    "without you, use\n"
    "'xce submit' and 'xce logs -f'. Its own failures are at 120+code: 122 usage, 124 permission, "
    "125 no leader,\n"
    "126 outcome unknown.";

absl::StatusOr<std::string> read_script(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const std::string advice =
        errno == ENOENT ? "; check the name, or run a command with 'xce submit -- " + path + "'"
                        : std::string("; check its permissions");
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the script ", path, ": ", std::strerror(errno), advice));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a directory; name the script in it"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read the script ", path, ": ", std::strerror(errno), "; check its permissions"));
  }
  // One byte more than may be, to see that it is too much.
  std::string bytes;
  char buffer[65536];
  while (in && bytes.size() <= XCE_MAX_SCRIPT_BYTES) {
    in.read(buffer, sizeof(buffer));
    bytes.append(buffer, static_cast<size_t>(in.gcount()));
  }
  return bytes;
}

// Fills the holder from the command line, the script and this process's surroundings; these are
// left out of what runs inside a job.
absl::Status prepare(const Context& context, SubmitOptions options, JobSpecHolder* holder,
                     bool inside_a_job = false) {
  const Tail& tail = context.tail;
  if (tail.words.empty()) {
    return absl::InvalidArgumentError(
        "nothing to run; name a script, or a command after --, as in 'xce submit -- hostname'");
  }
  if (tail.after_dashes) {
    holder->set_what("", tail.words);
  } else {
    const std::string& path = tail.words[0];
    absl::StatusOr<std::string> script = read_script(path);
    if (!script.ok()) return script.status();
    const std::string name = path == "-" ? "the script on standard input" : path;
    absl::Status status = check_script(name, *script, XCE_MAX_SCRIPT_BYTES);
    if (!status.ok()) return status;
    const auto directives = options_of_script(path, *script);
    if (!directives.ok()) return directives.status();
    const auto head = read_directives(path, *script);
    for (int line : head->ignored) {
      complain(absl::StrCat(path, ":", line,
                            ": #XCE below the first command is ignored; move it to the top"));
    }
    options = merge(options, *directives);
    holder->set_what(*std::move(script), {tail.words.begin() + 1, tail.words.end()});
  }
  absl::Status status = holder->set_options(options);
  if (!status.ok()) return status;
  holder->set_default_name(tail.words[0] == "-" ? "stdin" : tail.words[0]);
  status = holder->set_environment(options, inside_a_job ? nullptr : environ);
  if (!status.ok()) return status;
  if (inside_a_job && options.workdir.value_or("/").front() == '/') return absl::OkStatus();
  char dir[PATH_MAX];
  if (::getcwd(dir, sizeof(dir)) == nullptr) {
    return absl::InvalidArgumentError(
        "this directory does not exist any more; go to another one, or give --workdir");
  }
  holder->set_current_dir(dir);
  return absl::OkStatus();
}

// How many jobs a submission of `spec` made, of which `first` is the first.
uint32_t count_of(const xce_job_spec_t& spec, const xce_job_t& first) {
  if (spec.step.job_id == 0) return static_cast<uint32_t>(std::max<size_t>(spec.narray, 1));
  if (first.array_id == 0) return 1;
  const bool all = std::strcmp(spec.step.hosts[0], "*") == 0;
  return static_cast<uint32_t>(all ? first.spec.step.nhosts : spec.step.nhosts);
}

// How many jobs there are that run what `spec` says, from this one on; 0: it runs something else.
// If any, a second submission of its key is a repetition, not a mistake. The environment may
// differ: it does between two shells.
absl::StatusOr<uint32_t> runs_the_same(Session& session, uint64_t job_id,
                                       const xce_job_spec_t& spec) {
  xce_job_page_t* raw = nullptr;
  const auto rc =
      session.call(absl::StrCat("cannot look at job ", job_id, ", which has this submit key"),
                   [&](xcecli_ctx_t ctx) { return xcecli_jobinfo(ctx, job_id, &raw); });
  if (!rc.ok()) return rc.status();
  const Page page(raw);
  if (page->njobs == 0) return 0;
  const xce_job_spec_t& other = page->jobs[0].spec;
  bool same = other.nargs == spec.nargs && other.script_len == spec.script_len;
  for (size_t i = 0; same && i < spec.nargs; ++i)
    same = std::strcmp(other.args[i], spec.args[i]) == 0;
  same = same && other.step.job_id == spec.step.job_id &&
         (spec.script_len == 0 || std::memcmp(other.script, spec.script, spec.script_len) == 0);
  return same ? count_of(spec, page->jobs[0]) : 0;
}

absl::StatusOr<xce_submitted_t> submit(Session& session, JobSpecHolder* holder) {
  for (const DependencyRef& dependency : holder->dependency_refs()) {
    if (!dependency.job.indices.has_value()) {
      holder->add_dependency(dependency.kind, dependency.job.id);
      continue;
    }
    std::vector<std::string> missing;
    const auto jobs = resolve(session, {dependency.job}, &missing);
    if (!jobs.ok()) return jobs.status();
    if (!missing.empty())
      return absl::NotFoundError(absl::StrCat("there is no job ", missing[0], " to wait for"));
    for (const Resolved& job : *jobs) holder->add_dependency(dependency.kind, job.id);
  }
  const auto spec = holder->spec();
  if (!spec.ok()) return spec.status();
  xce_submitted_t submitted{};
  set_interrupt_note(
      "\nxce: interrupted while submitting; the job may be in the queue all the same: look with "
      "'xce jobs'\n");
  const auto rc = session.call(
      "cannot submit", [&](xcecli_ctx_t ctx) { return xcecli_jobsub(ctx, *spec, &submitted); });
  set_interrupt_note("");
  submitted.existing = false;  // libxce's own resending is no business of a person's
  if (rc.ok()) return submitted;
  xce_error_t last{};
  xcecli_last_error(&last);
  if (rc.status().code() != absl::StatusCode::kAlreadyExists || last.job_id == 0)
    return rc.status();
  const auto same = runs_the_same(session, last.job_id, **spec);
  if (!same.ok()) return same.status();
  if (*same > 0) return xce_submitted_t{last.job_id, *same, true};
  return absl::AlreadyExistsError(
      absl::StrCat("the submit key is that of job ", last.job_id, ", which runs something else; ",
                   "use another --submit-key, or see 'xce job ", last.job_id, "'"));
}

void report(const Context& context, const SubmitCommand& command, bool array,
            const xce_submitted_t& submitted) {
  if (context.json) {
    print_json(Json{{"job_id", submitted.job_id},
                    {"array", array},
                    {"count", submitted.count},
                    {"existing", submitted.existing}});
  } else if (command.quiet) {
    print(absl::StrCat(submitted.job_id, "\n"));
  } else {
    const std::string there = submitted.existing ? " (it was there already: same submit key)" : "";
    print(array ? absl::StrCat("Submitted job array ", submitted.job_id, " (", submitted.count,
                               submitted.count == 1 ? " task)" : " tasks)", there, "\n")
                : absl::StrCat("Submitted job ", submitted.job_id, there, "\n"));
  }
}

absl::StatusOr<int> run_submit(const Context& context, const SubmitCommand& command) {
  JobSpecHolder holder;
  absl::Status status = prepare(context, command.options, &holder);
  if (!status.ok()) return status;
  const auto checked = holder.spec();
  if (!checked.ok()) return checked.status();
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto submitted = submit(**session, &holder);
  if (!submitted.ok()) return submitted.status();
  const bool array = (*checked)->narray > 0;
  report(context, command, array, *submitted);
  if (!command.wait) return kOk;
  Resolved target{absl::StrCat(submitted->job_id), submitted->job_id, array, XCE_JOB_PENDING};
  int code = kOk;
  status = wait_for(
      **session, {target}, 0,
      [&](const EndedJob& job) {
        if (code == kOk) code = job.exit_code;
        if (!command.quiet && !context.json) print(outcome_words(job) + "\n");
      },
      [&](const xce_job_t& job) {
        if (!command.quiet) complain(stuck_words(job));
      });
  if (!status.ok()) return status;
  return code;
}

// After Ctrl-C: kills the jobs, whatever the cluster is doing, and tells.
int kill_and_leave(Session& session, const std::vector<uint64_t>& ids) {
  const int signal = interrupted();
  const std::string jobs =
      absl::StrCat(ids.size() == 1 ? "job " : "jobs ", absl::StrJoin(ids, " "));
  const auto rc = session.call(absl::StrCat("cannot kill ", jobs), [&](xcecli_ctx_t ctx) {
    return xcecli_jobctrl(ctx, ids.data(), ids.size(), XCE_JOBCTRL_KILL, 0, false);
  });
  if (rc.ok()) {
    complain(absl::StrCat("interrupted: ", jobs, ids.size() == 1 ? " is" : " are", " killed"));
  } else {
    complain(absl::StrCat("interrupted, but ", jobs,
                          " may run on: ", std::string(rc.status().message()),
                          "; kill it with 'xce kill ", absl::StrJoin(ids, " "), "'"));
  }
  return 128 + signal;
}

// Names the job that the command is to run in.
absl::Status step_into(Session& session, const SubmitCommand& command, JobSpecHolder* holder) {
  const auto ref = parse_job_ref(command.job);
  if (!ref.ok()) return ref.status();
  uint64_t id = ref->id;
  if (ref->indices.has_value()) {
    const auto task = resolve_one(session, *ref);
    if (!task.ok()) return task.status();
    id = task->id;
  }
  std::vector<std::string> hosts = command.hosts;
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  if (command.all_hosts) hosts = {"*"};
  return holder->set_step(command.options, id, std::move(hosts));
}

absl::Status check_run(const SubmitCommand& command) {
  if (command.options.array)
    return absl::InvalidArgumentError("run follows one job; submit an array with 'xce submit'");
  if (command.job.empty() && (command.all_hosts || !command.hosts.empty()))
    return absl::InvalidArgumentError("--host and --all-hosts are of the job that --job names");
  if (command.all_hosts && !command.hosts.empty())
    return absl::InvalidArgumentError("give --host or --all-hosts, not both");
  return absl::OkStatus();
}

// Follows what was started to its end. The code that stands for it is the highest.
absl::StatusOr<int> follow(Session& session, const SubmitCommand& command, bool own_errors,
                           const xce_submitted_t& submitted) {
  std::vector<uint64_t> ids;
  std::vector<FollowedJob> jobs;
  for (uint32_t i = 0; i < submitted.count; ++i) {
    const uint64_t id = ids.emplace_back(submitted.job_id + i);
    FollowedJob& job = jobs.emplace_back(FollowedJob{id, {{id, XCE_STDOUT, 1}}});
    if (own_errors) job.readers.emplace_back(id, XCE_STDERR, 2);
  }
  if (!command.quiet) {
    complain(absl::StrCat(ids.size() == 1 ? "job " : "jobs ", absl::StrJoin(ids, " "),
                          command.job.empty() ? "" : absl::StrCat(" inside job ", command.job),
                          " (Ctrl-C kills ", ids.size() == 1 ? "it)" : "them)"));
  }
  const auto ended = follow_jobs(session, std::move(jobs), {false, !command.quiet});
  if (interrupted() != 0 && !ended.ok()) return kill_and_leave(session, ids);
  if (!ended.ok()) return ended.status();
  int code = 0;
  for (const EndedJob& job : *ended) {
    if (!command.quiet && job.state != XCE_JOB_COMPLETED) complain(outcome_words(job));
    code = std::max(code, job.exit_code);
  }
  return code;
}

absl::StatusOr<int> run_run(const Context& context, const SubmitCommand& command) {
  absl::Status status = check_run(command);
  if (!status.ok()) return status;
  JobSpecHolder holder;
  status = prepare(context, command.options, &holder, !command.job.empty());
  if (!status.ok()) return status;
  const auto spec = holder.spec();
  if (!spec.ok()) return spec.status();
  if ((*spec)->narray > 0)
    return absl::InvalidArgumentError("run follows one job; submit an array with 'xce submit'");
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  if (!command.job.empty()) {
    status = step_into(**session, command, &holder);
    if (!status.ok()) return status;
  }
  const auto submitted = submit(**session, &holder);
  if (!submitted.ok()) return submitted.status();
  remember_interrupt();
  return follow(**session, command, (*spec)->stderr_path != nullptr, *submitted);
}

// CLI11 does not know what stands after the options.
void show_tail(CLI::App* app) {
  auto formatter = std::make_shared<CLI::Formatter>();
  formatter->column_width(34);
  formatter->label("OPTIONS", "OPTIONS] SCRIPT [ARGS...] | [OPTIONS] -- COMMAND [ARGS...");
  app->formatter(formatter);
}

}  // namespace

void register_submit(Registry* registry) {
  auto submit_command = std::make_shared<SubmitCommand>();
  Command& command =
      registry->add("submit", "submit a script or a command as a job", kSubmitExamples);
  add_submit_options(command.app, &submit_command->options);
  command.app->add_flag("--wait,-W", submit_command->wait,
                        "wait for its end; exits like 'xce wait'");
  command.app->add_flag("--quiet", submit_command->quiet, "print only the id");
  command.takes_tail = true;
  show_tail(command.app);
  command.own_codes = [submit_command] { return submit_command->wait; };
  command.run = [submit_command](const Context& context) {
    return run_submit(context, *submit_command);
  };

  auto run_command = std::make_shared<SubmitCommand>();
  Command& run =
      registry->add("run", "submit, show the output, exit with the job's exit code", kRunExamples);
  add_submit_options(run.app, &run_command->options);
  run.app->add_flag("--quiet", run_command->quiet, "print nothing but the job's output");
  run.app->add_option("-J,--job", run_command->job, "run inside this running job (17 or 20[3])")
      ->type_name("ID")
      ->check([](const std::string& text) {
        const auto ref = parse_job_ref(text);
        return ref.ok() ? std::string() : std::string(ref.status().message());
      });
  run.app
      ->add_option("-w,--host", run_command->hosts,
                   "with --job: on this host of it (default: its first); may be repeated")
      ->type_name("HOST")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  run.app->add_flag("--all-hosts", run_command->all_hosts, "with --job: on each of its hosts");
  run.takes_tail = true;
  show_tail(run.app);
  run.own_codes = [] { return true; };
  run.run = [run_command](const Context& context) { return run_run(context, *run_command); };
}

}  // namespace xce::cli
