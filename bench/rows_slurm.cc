// Slurm's submissions beside XCE's, where Slurm is installed.
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench.h"
#include "e2e/cluster/run.h"

namespace xce::bench {

void slurm_beside(Run* run) {
  if (!run->settings.wants({"slurm"})) return;
  const std::string what = "Slurm: sbatch of held jobs, 8 at a time";
  for (const char* program : {"/usr/sbin/slurmctld", "/usr/bin/sbatch", "/usr/sbin/munged"})
    if (access(program, X_OK) != 0) {
      run->report.skip("slurm", what,
                       "not installed: apt-get install slurmctld slurm-client munge");
      return;
    }
  if (geteuid() != 0) {
    run->report.skip("slurm", what, "needs root: its controller runs in namespaces of its own");
    return;
  }
  note("Slurm");
  const int jobs = run->settings.pick(200, 500, 2000);
  const e2e::Finished done =
      e2e::run("bench/slurm_rate.sh", {absl::StrCat(jobs), "8"}, {}, "", milliseconds(180000));
  double rate = 0;
  if (done.code != 0 || !absl::SimpleAtod(done.out, &rate) || rate <= 0) {
    run->report.skip("slurm", what, "it did not run: " + done.err);
    return;
  }
  Row row;
  row.id = "slurm";
  row.what = what;
  row.value = rate;
  row.unit = "/s";
  row.bound = "a process and an authentication a job, a state file written now and then";
  if (beside()->submissions_per_s > 0) {
    row.ratio = beside()->submissions_per_s / rate;
    row.beside =
        absl::StrFormat("more are XCE's submissions, %.0f /s", beside()->submissions_per_s);
    row.target = "XCE >= 20 x";
    row.met = *row.ratio >= 20;
  }
  run->report.add(std::move(row));
}

}  // namespace xce::bench
