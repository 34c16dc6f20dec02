// The options of a submission, as `xce submit` and the #XCE lines of a script give them, and the
// job spec they make.
#ifndef XCE_CLI_SUBMIT_OPTIONS_H_
#define XCE_CLI_SUBMIT_OPTIONS_H_

#include <xce/types.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/parse.h"

namespace xce::cli {

// What was given, checked but not yet understood: "not given" is told from every value.
struct SubmitOptions {
  std::optional<std::string> name, queue, cpus, nodes, memory, time, warn, array, input, output,
      error, workdir, priority, submit_key, comment;
  std::vector<std::string> gres, env, after, afterok, afternotok, afterany;
  std::optional<bool> singleton, hold, requeue, exclusive, export_none;
};

// Adds the options to `app`, bound to `out`; each value is checked as it is parsed.
void add_submit_options(CLI::App* app, SubmitOptions* out);

// `over` where it says something, `under` elsewhere. Environment variables of both count, those of
// `over` last; so do dependencies. Resources of `over` replace those of `under`.
SubmitOptions merge(const SubmitOptions& over, const SubmitOptions& under);

// The options that a script's #XCE lines give. InvalidArgument names the file and the line.
absl::StatusOr<SubmitOptions> options_of_script(const std::string& name, const std::string& bytes);

// A dependency as typed; its job may be a task that only the cluster can find.
struct DependencyRef {
  xce_dependency_kind_t kind = XCE_DEP_AFTER;
  JobRef job;
};

// Everything that a xce_job_spec_t points into. Not copyable: the spec points into itself.
class JobSpecHolder {
 public:
  JobSpecHolder();
  JobSpecHolder(const JobSpecHolder&) = delete;
  JobSpecHolder& operator=(const JobSpecHolder&) = delete;

  // Takes over the options. InvalidArgument: one makes no sense.
  absl::Status set_options(const SubmitOptions& options);
  // What runs: a script with arguments, or (script empty) a command.
  void set_what(std::string script, std::vector<std::string> args);
  void set_default_name(const std::string& name);
  // The caller's environment, then what --env gives. environ: NULL-terminated KEY=VALUE.
  absl::Status set_environment(const SubmitOptions& options, const char* const* environ);
  // A command inside that running job, on these hosts of it (client.capnp's Step): the job's own
  // environment and directory, but for what --env and --workdir say. InvalidArgument: an option
  // that only a job of its own can have was given.
  absl::Status set_step(const SubmitOptions& options, uint64_t job, std::vector<std::string> hosts);
  // Where relative paths begin; the job's working directory unless --workdir says otherwise.
  void set_current_dir(const std::string& dir);

  const std::vector<DependencyRef>& dependency_refs() const { return dependency_refs_; }
  void add_dependency(xce_dependency_kind_t kind, uint64_t job_id) {
    dependencies_.push_back({kind, job_id});
  }

  // Valid until the holder is changed. InvalidArgument when the whole is larger than one request
  // may be.
  absl::StatusOr<const xce_job_spec_t*> spec();

 private:
  xce_job_spec_t spec_{};
  std::string name_, queue_, script_, work_dir_, stdin_, stdout_, stderr_, submit_key_, comment_;
  std::vector<std::string> args_, env_, step_hosts_;
  std::vector<const char*> arg_pointers_, env_pointers_, step_pointers_;
  std::vector<std::pair<std::string, uint32_t>> gres_;
  std::vector<xce_gres_t> gres_c_;
  std::vector<uint32_t> array_;
  std::vector<xce_dependency_t> dependencies_;
  std::vector<DependencyRef> dependency_refs_;
};

}  // namespace xce::cli

#endif  // XCE_CLI_SUBMIT_OPTIONS_H_
