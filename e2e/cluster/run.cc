#include "e2e/cluster/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace xce::e2e {

Finished run(const std::string& program, const std::vector<std::string>& args,
             const std::vector<std::string>& env, const std::string& input, milliseconds limit) {
  Finished finished;
  const std::string path = find_program(program);
  if (path.empty()) {
    finished.err = "program " + program + " is not built";
    return finished;
  }
  const std::string dir = make_temp_dir("run");
  std::ofstream(dir + "/in", std::ios::binary) << input;
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(open((dir + "/in").c_str(), O_RDONLY), 0);
    dup2(open((dir + "/out").c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open((dir + "/err").c_str(), O_WRONLY | O_CREAT, 0600), 2);
    for (int fd = 3; fd < 256; ++fd) close(fd);
    for (const std::string& entry : env) putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    execv(path.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  const bool ended = wait_until([&] { return waitpid(pid, &status, WNOHANG) == pid; }, limit);
  if (ended) {
    finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } else {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  finished.out = read_file(dir + "/out");
  finished.err = read_file(dir + "/err");
  remove_tree(dir);
  return finished;
}

}  // namespace xce::e2e
