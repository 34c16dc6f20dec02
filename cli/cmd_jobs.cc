// xce jobs and xce job: what there is, and everything about one.
#include <time.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/job_selection.h"
#include "cli/labels.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr int64_t kRecentMs = 3600 * 1000;
constexpr uint64_t kTableRows = 50;
constexpr uint64_t kRecentScan = 5000;  // ended jobs looked at for those of the last hour

struct JobsOptions : JobSelection {
  std::string limit;
  bool all = false;
};

struct Pass {
  uint32_t states = 0;
  int64_t ended_after_ms = 0;  // 0: any time
};

// One query for what was asked; by default the jobs alive, then those that ended in the last hour.
std::vector<Pass> passes_of(const JobsOptions& options, uint32_t states, int64_t now_ms) {
  if (states != 0 || options.all || !options.ids.empty()) return {{states, 0}};
  return {{kAliveStates, 0}, {kEndedStates, now_ms - kRecentMs}};
}

// Calls `each` for every job that the options select, newest first. True in *more: the limit cut
// the list.
absl::Status select_jobs(Session& session, const JobsOptions& options,
                         const std::vector<uint64_t>& ids, uint32_t states, uint64_t limit,
                         int64_t now_ms, const std::function<void(const xce_job_t&)>& each,
                         bool* more) {
  const std::string owner = options.owner();
  xce_job_filter_t filter = filter_of(options, owner);
  filter.ids = ids.empty() ? nullptr : ids.data();
  filter.nids = ids.size();
  uint64_t shown = 0;
  std::set<uint64_t> listed;  // a job may end between the two passes
  for (const Pass& pass : passes_of(options, states, now_ms)) {
    filter.states = pass.states;
    filter.after_id = 0;
    filter.limit = limit == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(limit + 1, 500));
    uint64_t scanned = 0;
    const absl::Status status = session.all_jobs(filter, [&](const xce_job_t& job) {
      if (pass.ended_after_ms != 0 && job.end_ms < pass.ended_after_ms)
        return ++scanned < kRecentScan;
      if (limit != 0 && shown == limit) {
        *more = true;
        return false;
      }
      if (!listed.insert(job.id).second) return true;
      each(job);
      ++shown;
      return true;
    });
    if (!status.ok()) return status;
    if (*more) break;
  }
  return absl::OkStatus();
}

// Where it runs, or when it may start and why it waits.
std::string start_words(const xce_job_t& job, int64_t now_ms) {
  const std::string place = place_of(job);
  if (job.estimated_start_ms <= now_ms) return place;
  return absl::StrCat("starts ", relative_time(now_ms, job.estimated_start_ms),
                      place.empty() ? "" : " ", place);
}

std::vector<Cell> row_of(const xce_job_t& job, int64_t now_ms) {
  const int64_t ran = run_ms(job, now_ms);
  return {
      id_of(job),
      job.spec.name,
      job.spec.user,
      job.spec.queue,
      Cell(state_word(job.state), state_colour(job.state)),
      absl::StrCat(std::max<uint32_t>(job.spec.cpus, 1) * std::max<uint32_t>(job.spec.nodes, 1)),
      ran < 0 ? std::string("-") : clock_duration(ran),
      relative_time(now_ms, job.submit_ms),
      start_words(job, now_ms)};
}

Table jobs_table() {
  return Table({{"ID"},
                {"NAME", Align::kLeft, 24},
                {"USER", Align::kLeft, 12},
                {"QUEUE", Align::kLeft, 12},
                {"STATE"},
                {"CPUS", Align::kRight},
                {"TIME", Align::kRight},
                {"SUBMITTED", Align::kRight},
                {"WHERE OR WHY"}});
}

absl::StatusOr<int> run_jobs(const Context& context, const JobsOptions& options) {
  const auto refs = parse_job_refs(options.ids);
  if (!refs.ok()) return refs.status();
  uint32_t states = 0;
  if (!options.state.empty()) {
    const auto parsed = parse_states(options.state);
    if (!parsed.ok()) return parsed.status();
    states = *parsed;
  }
  uint64_t limit = context.json ? 0 : kTableRows;
  if (!options.limit.empty()) {
    const auto parsed = parse_number(options.limit, 0, 100000000);
    if (!parsed.ok()) return of_option("--limit", parsed.status());
    limit = static_cast<uint64_t>(*parsed);
  }
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto now = (*session)->now_ms();
  if (!now.ok()) return now.status();
  std::vector<uint64_t> ids;
  std::vector<std::string> missing;
  if (!refs->empty()) {
    auto all = all_ids(**session, *refs, &missing);
    if (!all.ok()) return all.status();
    ids = *std::move(all);
  }
  bool more = false;
  if (context.json) {
    // Printed as it comes: a million jobs need no memory here.
    std::string buffer = "{\"jobs\":[";
    bool first = true;
    absl::Status status;
    if (refs->empty() || !ids.empty()) {
      status = select_jobs(
          **session, options, ids, states, limit, *now,
          [&](const xce_job_t& job) {
            absl::StrAppend(&buffer, first ? "" : ",", dump(job_json(job, false), false));
            first = false;
            if (buffer.size() > 1 << 16) {
              print(buffer);
              buffer.clear();
            }
          },
          &more);
    }
    if (!status.ok()) return status;
    absl::StrAppend(&buffer, "],\"truncated\":", more ? "true" : "false", "}\n");
    print(buffer);
  } else {
    Table table = jobs_table();
    if (refs->empty() || !ids.empty()) {
      const absl::Status status = select_jobs(
          **session, options, ids, states, limit, *now,
          [&](const xce_job_t& job) { table.add_row(row_of(job, *now)); }, &more);
      if (!status.ok()) return status;
    }
    print(table.render(terminal_width(), use_colour()));
    if (more)
      complain(absl::StrCat("only the first ", limit, " jobs are shown; --limit 0 shows all"));
  }
  if (!missing.empty())
    return absl::NotFoundError(
        absl::StrCat("there is no job ", missing[0], "; see 'xce jobs --all'"));
  return kOk;
}

// ---- xce job ID ----

class Sheet {  // "  Name        value" lines
 public:
  void title(const std::string& text) { absl::StrAppend(&out_, text, "\n"); }
  void line(const std::string& key, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&out_, absl::StrFormat("  %-12s ", key), value, "\n");
  }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
};

std::string why(const xce_job_t& job) {
  const std::string reason = printable(job.reason);
  if (job.state == XCE_JOB_HELD) {
    return absl::StrCat(reason.empty() ? "held" : reason, "; 'xce release ", id_of(job),
                        "' lets it start");
  }
  if (job.state == XCE_JOB_PENDING && reason.empty()) return "no scheduler has looked at it yet";
  return reason;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`;&|<>()*?[]#~") == std::string::npos)
    return word;
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_of(const xce_job_spec_t& spec) {
  std::string out;
  if (spec.script_len > 0)
    out = absl::StrCat("a script of ", count_words(spec.script_len, "byte", "bytes"));
  for (size_t i = 0; i < spec.nargs; ++i)
    absl::StrAppend(&out, out.empty() ? "" : " ", quoted(spec.args[i]));
  return printable(out);
}

void add_request(const xce_job_spec_t& spec, Sheet* sheet) {
  std::string request = count_words(std::max<uint32_t>(spec.cpus, 1), "cpu", "cpus");
  if (spec.memory_mb != 0) absl::StrAppend(&request, ", ", memory_words(spec.memory_mb), " memory");
  if (spec.ngres > 0) absl::StrAppend(&request, ", ", gres_words(spec.gres, spec.ngres));
  absl::StrAppend(&request, " on ",
                  count_words(std::max<uint32_t>(spec.nodes, 1), "host", "hosts"));
  if (spec.exclusive) absl::StrAppend(&request, ", exclusively");
  sheet->line("Asks for", printable(request));
  std::string limit = spec.time_limit_s == 0
                          ? "none"
                          : clock_duration(static_cast<int64_t>(spec.time_limit_s) * 1000);
  if (spec.warn_signal != 0)
    absl::StrAppend(&limit, ", ", signal_name(spec.warn_signal), " ", spec.warn_before_s,
                    " s before");
  sheet->line("Time limit", limit);
  sheet->line("Priority", absl::StrCat(spec.priority));
  if (spec.requeue) sheet->line("Requeue", "when its host is lost");
  std::string after;
  for (size_t i = 0; i < spec.ndependencies; ++i) {
    absl::StrAppend(&after, i == 0 ? "" : ", ", dependency_word(spec.dependencies[i].kind));
    if (spec.dependencies[i].job_id != 0) absl::StrAppend(&after, " ", spec.dependencies[i].job_id);
  }
  sheet->line("Depends on", after);
}

void add_timeline(const xce_job_t& job, int64_t now_ms, Sheet* sheet) {
  const auto at = [&](int64_t ms) {
    return absl::StrCat(local_time(ms), " (", relative_time(now_ms, ms), ")");
  };
  sheet->line("Submitted", at(job.submit_ms));
  if (job.eligible_ms > job.submit_ms + 1000) sheet->line("Eligible", at(job.eligible_ms));
  if (job.estimated_start_ms > now_ms) {
    sheet->line("Starts", absl::StrCat("at about ", local_time(job.estimated_start_ms), " (",
                                       relative_time(now_ms, job.estimated_start_ms),
                                       "), by the time limits of the jobs before it"));
  }
  if (job.start_ms != 0) {
    const int64_t since = job.eligible_ms != 0 ? job.eligible_ms : job.submit_ms;
    sheet->line(
        "Started",
        absl::StrCat(at(job.start_ms), ", after waiting ", long_duration(job.start_ms - since),
                     job.starts > 1 ? absl::StrCat(", start number ", job.starts) : ""));
  }
  if (job.end_ms != 0) {
    const int64_t ran = run_ms(job, now_ms);
    sheet->line("Ended", absl::StrCat(at(job.end_ms), ran < 0 ? ", never started"
                                                              : ", after " + long_duration(ran)));
  }
}

std::string sheet_of(const xce_job_t& job, int64_t now_ms) {
  Sheet sheet;
  sheet.title(absl::StrCat(paint(absl::StrCat("Job ", id_of(job)), Colour::kBold, use_colour()),
                           " ", printable(job.spec.name)));
  std::string state = paint(state_word(job.state), state_colour(job.state), use_colour());
  if (!is_ended(job) && job.desired == XCE_DESIRED_KILL) absl::StrAppend(&state, " (being killed)");
  if (!is_ended(job) && job.desired == XCE_DESIRED_SUSPEND && job.state == XCE_JOB_RUNNING)
    absl::StrAppend(&state, " (being suspended)");
  sheet.line("State", state);
  sheet.line(is_ended(job) ? "Outcome" : "Why", why(job));
  // Nobody knows how a lost job ended.
  if (is_ended(job) && job.start_ms != 0 && job.state != XCE_JOB_LOST)
    sheet.line("Exit code", exit_code_words(job.exit_code, job.exit_signal));
  if (job.array_id != 0) {
    sheet.line("Array", absl::StrCat("task ", job.array_index, " of array ", job.array_id, " (job ",
                                     job.id, ")"));
  }
  if (job.spec.step.job_id != 0)
    sheet.line("Inside", absl::StrCat("job ", job.spec.step.job_id, ", with which it ends"));
  sheet.line("User", printable(job.spec.user));
  sheet.line("Queue", printable(job.spec.queue));
  sheet.line("Hosts", printable(hosts_of(job)));
  for (size_t i = 0; i < job.nallocs; ++i) {
    const xce_alloc_t& alloc = job.allocs[i];
    if (alloc.ngres == 0) continue;
    sheet.line("Has",
               printable(absl::StrCat(gres_words(alloc.gres, alloc.ngres), " on ", alloc.host)));
  }
  add_timeline(job, now_ms, &sheet);
  if (job.usage.wall_ms != 0 || job.usage.cpu_ms != 0) {
    sheet.line(
        "Used",
        absl::StrCat(long_duration(static_cast<int64_t>(job.usage.cpu_ms)), " processor time, ",
                     memory_words((job.usage.peak_memory_kb + 1023) / 1024), " memory at most"));
  }
  add_request(job.spec, &sheet);
  sheet.line("Runs", command_of(job.spec));
  sheet.line("In", printable(job.spec.work_dir));
  sheet.line("Output",
             printable(job.stdout_file[0] != '\0' ? job.stdout_file : job.spec.stdout_path));
  const std::string error = job.stderr_file[0] != '\0' ? job.stderr_file : job.spec.stderr_path;
  if (error != job.stdout_file) sheet.line("Errors to", printable(error));
  const std::string key = job.spec.submit_key;
  if (key.rfind("xce-", 0) != 0)
    sheet.line("Submit key", printable(key));  // libxce's own say nothing to people
  sheet.line("Comment", printable(job.spec.comment));
  return sheet.text();
}

struct ArraySummary {
  std::array<RangeWriter, XCE_JOB_LOST + 1> ranges;
  std::array<uint64_t, XCE_JOB_LOST + 1> counts{};
  uint64_t tasks = 0;
};

absl::StatusOr<ArraySummary> summarize(Session& session, uint64_t array_id) {
  ArraySummary summary;
  xce_job_filter_t filter{};
  filter.array_id = array_id;
  const absl::Status status = session.all_jobs(filter, [&](const xce_job_t& job) {
    ++summary.tasks;
    ++summary.counts[job.state];
    summary.ranges[job.state].add(job.array_index);
    return true;
  });
  if (!status.ok()) return status;
  return summary;
}

absl::StatusOr<Page> job_in_full(Session& session, uint64_t id) {
  xce_job_page_t* raw = nullptr;
  const auto rc = session.call(absl::StrCat("cannot look at job ", id),
                               [&](xcecli_ctx_t ctx) { return xcecli_jobinfo(ctx, id, &raw); });
  if (!rc.ok() && rc.status().code() != absl::StatusCode::kNotFound) return rc.status();
  Page page(raw);
  if (!rc.ok() || page->njobs == 0) {
    return absl::NotFoundError(absl::StrCat("there is no job ", id, "; see 'xce jobs --all'"));
  }
  return page;
}

absl::StatusOr<int> show_array(const Context& context, Session& session, const xce_job_t& first,
                               int64_t now_ms) {
  const auto summary = summarize(session, first.array_id);
  if (!summary.ok()) return summary.status();
  if (context.json) {
    Json tasks = Json::object(), indices = Json::object();
    for (int s = 0; s <= XCE_JOB_LOST; ++s) {
      if (summary->counts[s] == 0) continue;
      tasks[state_word(static_cast<xce_job_state_t>(s))] = summary->counts[s];
      indices[state_word(static_cast<xce_job_state_t>(s))] = summary->ranges[s].str();
    }
    print_json(Json{{"array_id", first.array_id},
                    {"task_count", summary->tasks},
                    {"counts", tasks},
                    {"indices", indices},
                    {"first_task", job_json(first, true)}});
    return kOk;
  }
  Sheet sheet;
  sheet.title(
      absl::StrCat(paint(absl::StrCat("Job array ", first.array_id), Colour::kBold, use_colour()),
                   " ", printable(first.spec.name)));
  std::string limit;
  if (first.spec.array_limit != 0)
    limit = absl::StrCat(", at most ", first.spec.array_limit, " at once");
  sheet.line("Tasks", absl::StrCat(summary->tasks, limit));
  for (int s = 0; s <= XCE_JOB_LOST; ++s) {
    if (summary->counts[s] == 0) continue;
    const auto state = static_cast<xce_job_state_t>(s);
    const std::string word = state_word(state);
    sheet.line(paint(word, state_colour(state), use_colour()) +
                   std::string(word.size() < 12 && use_colour() ? 12 - word.size() : 0, ' '),
               absl::StrCat(summary->counts[s], " (", summary->ranges[s].str(), ")"));
  }
  sheet.line("User", printable(first.spec.user));
  sheet.line("Queue", printable(first.spec.queue));
  sheet.line("Submitted", absl::StrCat(local_time(first.submit_ms), " (",
                                       relative_time(now_ms, first.submit_ms), ")"));
  if (first.state == XCE_JOB_PENDING || first.state == XCE_JOB_HELD) sheet.line("Why", why(first));
  add_request(first.spec, &sheet);
  sheet.line("Runs", command_of(first.spec));
  sheet.line("In", printable(first.spec.work_dir));
  print(absl::StrCat(sheet.text(), "One task: xce job ", id_of(first), "   All: xce jobs ",
                     first.array_id, "\n"));
  return kOk;
}

absl::StatusOr<int> run_job(const Context& context, const std::string& text) {
  const auto ref = parse_job_ref(text);
  if (!ref.ok()) return ref.status();
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  uint64_t id = ref->id;
  if (ref->indices.has_value()) {
    const auto task = resolve_one(**session, *ref);
    if (!task.ok()) return task.status();
    id = task->id;
  }
  const auto page = job_in_full(**session, id);
  if (!page.ok()) return page.status();
  const auto now = (*session)->now_ms();
  if (!now.ok()) return now.status();
  const xce_job_t& job = (*page)->jobs[0];
  if (job.array_id == job.id && !ref->indices.has_value())
    return show_array(context, **session, job, *now);
  if (context.json) {
    print_json(job_json(job, true));
  } else {
    print(sheet_of(job, *now));
  }
  return kOk;
}

}  // namespace

void register_jobs(Registry* registry) {
  auto options = std::make_shared<JobsOptions>();
  Command& command = registry->add(
      "jobs", "list jobs: those alive, then those that ended in the last hour, newest first",
      "  xce jobs                          at most 50 rows\n"
      "  xce jobs --all --limit 0          also those that ended before; all: xce history\n"
      "  xce jobs -s failed,timeout        in these states, whenever they ended\n"
      "  xce jobs -u ada -q night          of a user, in a queue\n"
      "  xce jobs 17 20[0-4]               these\n"
      "  xce jobs --output json            for programs; no limit unless --limit says one");
  add_selection(command.app, options.get(),
                {"states, with commas; also alive, ended", "in this queue", "on this host"});
  command.app->add_flag(
      "-a,--all", options->all,
      "also those that ended before the last hour, as far as they are no history");
  command.app->add_option("-l,--limit", options->limit, "rows at most; 0: all")->type_name("N");
  command.run = [options](const Context& context) { return run_jobs(context, *options); };

  auto id = std::make_shared<std::string>();
  Command& job =
      registry->add("job", "show everything about one job, with why it waits or how it ended",
                    "  xce job 17       a job, or the summary of an array\n"
                    "  xce job 20[3]    a task of an array");
  job.app->add_option("ID", *id, "a job, an array, or a task (17[3])")->required();
  job.run = [id](const Context& context) { return run_job(context, *id); };
}

}  // namespace xce::cli
