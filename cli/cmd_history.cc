// xce history: jobs that have ended, however long ago.
#include <time.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/job_selection.h"
#include "cli/labels.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/when.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr uint64_t kTableRows = 50;
constexpr size_t kFlushBytes = 1 << 16;
constexpr uint32_t kPageRows = 500;

struct HistoryOptions : JobSelection {
  std::string since, until, limit;
};

std::string local_minute(int64_t ms) {
  if (ms == 0) return "-";
  const time_t seconds = ms / 1000;
  tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  ::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string exit_of(const xce_job_t& job) {
  if (job.start_ms == 0) return "-";
  return job.exit_signal != 0 ? signal_name(job.exit_signal) : absl::StrCat(job.exit_code);
}

Table history_table() {
  return Table({{"ID"},
                {"NAME", Align::kLeft, 24},
                {"USER", Align::kLeft, 12},
                {"QUEUE", Align::kLeft, 12},
                {"STATE"},
                {"EXIT", Align::kRight},
                {"CPUS", Align::kRight},
                {"TIME", Align::kRight},
                {"ENDED"},
                {"HOSTS"}});
}

std::vector<Cell> row_of(const xce_job_t& job) {
  const int64_t ran = run_ms(job, job.end_ms);
  return {
      id_of(job),
      job.spec.name,
      job.spec.user,
      job.spec.queue,
      Cell(state_word(job.state), state_colour(job.state)),
      exit_of(job),
      absl::StrCat(std::max<uint32_t>(job.spec.cpus, 1) * std::max<uint32_t>(job.spec.nodes, 1)),
      ran < 0 ? std::string("-") : clock_duration(ran),
      local_minute(job.end_ms),
      hosts_of(job)};
}

// What the options say, as a filter; its texts are the options' own.
absl::StatusOr<xce_job_filter_t> ended_filter_of(const HistoryOptions& options,
                                                 const std::string& user, int64_t now_ms) {
  xce_job_filter_t filter = filter_of(options, user);
  if (!options.state.empty()) {
    const auto states = parse_states(options.state);
    if (!states.ok()) return states.status();
    filter.states = *states & kEndedStates;
    if (filter.states == 0)
      return absl::InvalidArgumentError(absl::StrCat("only jobs that have ended are history, not ",
                                                     options.state, ": see 'xce jobs'"));
  }
  for (const auto& [text, to] :
       {std::pair{&options.since, &filter.since_ms}, std::pair{&options.until, &filter.until_ms}}) {
    if (text->empty()) continue;
    const auto when = parse_when(*text, now_ms);
    if (!when.ok()) return when.status();
    *to = std::max<int64_t>(1, *when);
  }
  return filter;
}

// Calls `each` for what matches, newest first, up to the limit (0: none). True in *more: it cut.
absl::Status select(Session& session, xce_job_filter_t filter, uint64_t limit,
                    const std::function<void(const xce_job_t&)>& each, bool* more) {
  uint64_t shown = 0;
  filter.limit =
      limit == 0 ? kPageRows : static_cast<uint32_t>(std::min<uint64_t>(limit + 1, kPageRows));
  return session.ended_jobs(filter, [&](const xce_job_t& job) {
    if (limit != 0 && shown == limit) {
      *more = true;
      return false;
    }
    ++shown;
    each(job);
    return true;
  });
}

absl::StatusOr<int> run_history(const Context& context, const HistoryOptions& options) {
  const auto refs = parse_job_refs(options.ids);
  if (!refs.ok()) return refs.status();
  uint64_t limit = context.json || !refs->empty() ? 0 : kTableRows;
  if (!options.limit.empty()) {
    const auto parsed = parse_number(options.limit, 0, 1000000000);
    if (!parsed.ok()) return of_option("--limit", parsed.status());
    limit = static_cast<uint64_t>(*parsed);
  }
  const std::string user = options.owner();
  // Before anything is asked: what makes no sense should not wait for a controller.
  if (const auto checked = ended_filter_of(options, user, 0); !checked.ok())
    return checked.status();
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto now = (*session)->now_ms();
  if (!now.ok()) return now.status();
  auto filter = ended_filter_of(options, user, *now);
  if (!filter.ok()) return filter.status();
  std::vector<std::string> missing;
  const auto ids = all_ids(**session, *refs, &missing);
  if (!ids.ok()) return ids.status();
  filter->ids = ids->empty() ? nullptr : ids->data();
  filter->nids = ids->size();
  const bool any = refs->empty() || !ids->empty();
  bool more = false;
  absl::Status status;
  if (context.json) {
    std::string buffer = "{\"jobs\":[";  // printed as it comes
    bool first = true;
    const auto each = [&](const xce_job_t& job) {
      absl::StrAppend(&buffer, first ? "" : ",", dump(job_json(job, false), false));
      first = false;
      if (buffer.size() < kFlushBytes) return;
      print(buffer);
      buffer.clear();
    };
    if (any) status = select(**session, *filter, limit, each, &more);
    if (!status.ok()) return status;
    print(absl::StrCat(buffer, "],\"truncated\":", more ? "true" : "false", "}\n"));
  } else {
    Table table = history_table();
    const auto each = [&](const xce_job_t& job) { table.add_row(row_of(job)); };
    if (any) status = select(**session, *filter, limit, each, &more);
    if (!status.ok()) return status;
    print(table.render(terminal_width(), use_colour()));
    if (more)
      complain(absl::StrCat("only the newest ", limit, " jobs are shown; --limit 0 shows all"));
  }
  if (!missing.empty()) return absl::NotFoundError(absl::StrCat("there is no job ", missing[0]));
  return kOk;
}

}  // namespace

void register_history(Registry* registry) {
  auto options = std::make_shared<HistoryOptions>();
  Command& command = registry->add(
      "history", "list jobs that have ended, however long ago, newest first",
      "  xce history                            at most 50 rows\n"
      "  xce history -u ada --since 7d          of a user, ended in the last seven days\n"
      "  xce history -s failed,timeout --since yesterday --until today\n"
      "  xce history -w n17 -q night --limit 0  that ran on a host, from a queue; all of them\n"
      "  xce history 17 20[0-4]                 these\n"
      "  xce history --output json              for programs; no limit unless --limit says one");
  add_selection(command.app, options.get(),
                {"states, with commas", "from this queue", "that ran on this host"});
  command.app
      ->add_option("-S,--since", options->since,
                   "ended then or later: 2h (ago), today, yesterday, 14:30, 2026-11-30, ...")
      ->type_name("WHEN");
  command.app->add_option("-E,--until", options->until, "ended before then")->type_name("WHEN");
  command.app->add_option("-l,--limit", options->limit, "rows at most; 0: all")->type_name("N");
  command.run = [options](const Context& context) { return run_history(context, *options); };
}

}  // namespace xce::cli
