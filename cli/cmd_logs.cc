// xce logs: a job's output, from wherever it runs.
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/follower.h"
#include "cli/labels.h"

namespace xce::cli {
namespace {

struct LogsOptions {
  std::string id;
  bool follow = false;
  bool error = false;
};

absl::StatusOr<int> run_logs(const Context& context, const LogsOptions& options) {
  const auto ref = parse_job_ref(options.id);
  if (!ref.ok()) return ref.status();
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto job = resolve_one(**session, *ref);
  if (!job.ok()) return job.status();
  LogReader reader(job->id, options.error ? XCE_STDERR : XCE_STDOUT, 1);
  if (options.follow) {
    const auto ended = follow_jobs(**session, {{job->id, {reader}}}, {});
    if (!ended.ok()) return ended.status();
    return kOk;
  }
  if (job->state == XCE_JOB_PENDING || job->state == XCE_JOB_HELD) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job->text, " is ", state_word(job->state),
                     ": no output yet; wait for it with 'xce logs -f ", job->text,
                     "', or see why with 'xce job ", job->text, "'"));
  }
  const absl::Status status = reader.pump(**session, false);
  if (!status.ok()) return status;
  return kOk;
}

}  // namespace

void register_logs(Registry* registry) {
  auto options = std::make_shared<LogsOptions>();
  Command& command =
      registry->add("logs", "show a job's output",
                    "  xce logs 17        what there is\n"
                    "  xce logs -f 17     as it grows, until the job has ended\n"
                    "  xce logs -e 17     its standard error, when that is a file of its own\n"
                    "  xce logs 20[3]     a task of an array");
  command.app->add_option("ID", options->id, "a job, or a task (17[3])")->required();
  command.app->add_flag("-f,--follow", options->follow, "go on until the job has ended");
  command.app->add_flag("-e,--stderr", options->error, "standard error instead of standard output");
  command.run = [options](const Context& context) { return run_logs(context, *options); };
}

}  // namespace xce::cli
