// xce wait: until jobs have ended; exits with the job's own code.
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"
#include "cli/waiter.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

struct WaitOptions {
  std::vector<std::string> ids;
  std::string timeout;
  bool quiet = false;
};

absl::StatusOr<int> run_wait(const Context& context, const WaitOptions& options) {
  const auto refs = parse_job_refs(options.ids);
  if (!refs.ok()) return refs.status();
  long long until = 0;
  if (!options.timeout.empty()) {
    const auto ms = parse_duration_ms(options.timeout);
    if (!ms.ok()) return of_option("--timeout", ms.status());
    until = steady_ms() + *ms;
  }
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  std::vector<std::string> missing;
  const auto targets = resolve(**session, *refs, &missing);
  if (!targets.ok()) return targets.status();
  if (!missing.empty())
    return absl::NotFoundError(
        absl::StrCat("there is no job ", missing[0], "; see 'xce jobs --all'"));

  Json jobs = Json::array();
  std::map<uint64_t, int> codes;  // of every job that ended
  const absl::Status status = wait_for(
      **session, *targets, until,
      [&](const EndedJob& job) {
        codes[job.id] = job.exit_code;
        if (context.json) {
          jobs.push_back(Json{{"id", job.id},
                              {"job", job.text},
                              {"state", state_word(job.state)},
                              {"exit_code", job.exit_code},
                              {"reason", job.reason}});
        } else if (!options.quiet) {
          print(outcome_words(job) + "\n");
        }
      },
      [&](const xce_job_t& job) {
        if (!options.quiet) complain(stuck_words(job));
      });
  if (!status.ok()) return status;
  // The first that did not succeed, in the order given; an array's tasks follow its id in the map.
  int code = kOk;
  for (const Resolved& target : *targets) {
    if (code != kOk) break;
    if (!target.array) code = codes[target.id];
  }
  for (auto it = codes.begin(); code == kOk && it != codes.end(); ++it) code = it->second;
  if (context.json) print_json(Json{{"jobs", jobs}, {"exit_code", code}});
  return code;
}

}  // namespace

void register_wait(Registry* registry) {
  auto options = std::make_shared<WaitOptions>();
  Command& command = registry->add(
      "wait", "wait until jobs have ended; exits with the job's exit code",
      "  xce wait 17                  exit code of job 17 (128+signal when a signal ended it)\n"
      "  xce wait 17 18 19            all of them; the code of the first that did not succeed\n"
      "  xce wait 20                  an array: all its tasks\n"
      "  xce wait --timeout 10m 17    127 when it has not ended by then\n"
      "Its own failures are at 120+code: 122 usage, 123 no such job, 125 no leader, 127 timeout.\n"
      "It lives through failovers: an outage is waited for, unless --deadline is given.");
  command.app->add_option("ID", options->ids, "jobs, arrays, or tasks (17[3])")->required();
  command.app->add_option("--timeout", options->timeout, "wait no longer than this: 90, 10m")
      ->type_name("TIME");
  command.app->add_flag("--quiet", options->quiet, "print nothing");
  command.own_codes = [] { return true; };
  command.run = [options](const Context& context) { return run_wait(context, *options); };
}

}  // namespace xce::cli
