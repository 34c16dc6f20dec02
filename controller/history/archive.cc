#include "controller/history/archive.h"

namespace xce::history {

size_t bytes_of(const Job& job) {
  size_t n = 640 + job.reason.size() + job.spec.comment.size() + job.spec.array.size() * 4 +
             job.allocs.size() * 96 + job.spec.name.size() + job.spec.work_dir.size() +
             job.spec.submit_key.size() + job.spec.stdout_path.size() +
             job.spec.stderr_path.size() + job.stdout_file.size() + job.stderr_file.size();
  if (job.spec.body) {
    n += job.spec.body->script.size();
    for (const std::string& arg : job.spec.body->args) n += arg.size() + 16;
    for (const std::string& env : job.spec.body->env) n += env.size() + 16;
  }
  return n;
}

}  // namespace xce::history
