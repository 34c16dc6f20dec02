#include "e2e/cluster/process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace xce::e2e {
namespace {

int code_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// pid -> parent pid of every process that can be seen.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> out;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return out;
  while (dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    const std::string stat = read_file(absl::StrCat("/proc/", pid, "/stat"));
    const size_t paren = stat.rfind(')');
    if (paren == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    if (sscanf(stat.c_str() + paren + 1, " %c %d", &state, &parent) == 2 && state != 'Z')
      out[pid] = parent;
  }
  closedir(proc);
  return out;
}

std::vector<pid_t> descendants() {
  const std::map<pid_t, pid_t> all = parents();
  std::vector<pid_t> found = {getpid()};
  for (size_t i = 0; i < found.size(); ++i)
    for (const auto& [pid, parent] : all)
      if (parent == found[i]) found.push_back(pid);
  found.erase(found.begin());
  return found;
}

}  // namespace

bool wait_until(const std::function<bool()>& ready, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (!ready()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(3));
  }
  return true;
}

std::string find_program(const std::string& name) {
  if (access(name.c_str(), X_OK) == 0) return std::filesystem::absolute(name);
  char self[4096];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return "";
  std::filesystem::path dir = std::string(self, n);
  while (dir.has_relative_path()) {
    dir = dir.parent_path();
    const std::filesystem::path candidate = dir / name;
    if (access(candidate.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(candidate))
      return candidate;
  }
  return "";
}

Process::~Process() {
  if (pid_ > 0) kill9();
}

absl::Status Process::start(const std::vector<std::string>& argv, const std::string& log_path,
                            const std::vector<std::string>& extra_env) {
  if (pid_ > 0) return absl::FailedPreconditionError("already running");
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  std::vector<std::string> env_storage = extra_env;
  for (char** e = environ; *e != nullptr; ++e) env_storage.emplace_back(*e);
  std::vector<char*> env;
  for (std::string& e : env_storage) env.push_back(e.data());
  env.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::InternalError(absl::StrCat("fork: ", strerror(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(125);
    setpgid(0, 0);  // a Ctrl-C at the terminal is for the parent, which ends its children in order
    const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    for (int fd = 3; fd < 256; ++fd) close(fd);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(args[0], args.data(), env.data());
    dprintf(2, "cannot run %s: %s\n", args[0], strerror(errno));
    _exit(127);
  }
  pid_ = pid;
  exit_code_ = -1;
  return absl::OkStatus();
}

bool Process::alive() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = code_of(status);
    pid_ = -1;
    return false;
  }
  return true;
}

void Process::signal(int number) {
  if (pid_ > 0) ::kill(pid_, number);
}

void Process::kill9() {
  if (!alive()) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  if (waitpid(pid_, &status, 0) == pid_) exit_code_ = code_of(status);
  pid_ = -1;
}

int Process::wait(milliseconds limit) {
  if (pid_ <= 0) return exit_code_;
  return wait_until([this] { return !alive(); }, limit) ? exit_code_ : -1;
}

int Process::terminate(milliseconds grace) {
  if (!alive()) return -1;
  ::kill(pid_, SIGCONT);
  ::kill(pid_, SIGTERM);
  const int code = wait(grace);
  if (pid_ > 0) kill9();
  return code >= 0 ? code : exit_code_;
}

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

int kill_descendants() {
  int count = 0;
  for (int round = 0; round < 20; ++round) {
    const std::vector<pid_t> found = descendants();
    for (pid_t pid : found) ::kill(pid, SIGKILL);
    count += found.size();
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (found.empty()) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return count;
}

std::vector<std::string> living_descendants() {
  std::vector<std::string> out;
  for (pid_t pid : descendants()) {
    std::string line = read_file(absl::StrCat("/proc/", pid, "/cmdline"));
    for (char& c : line)
      if (c == 0) c = ' ';
    out.push_back(absl::StrCat(pid, " ", line));
  }
  return out;
}

std::string make_temp_dir(const std::string& prefix) {
  std::string base = "/tmp";
  for (const char* name : {"TEST_TMPDIR", "TMPDIR"}) {
    const char* value = getenv(name);
    if (value != nullptr && *value != 0) {
      base = value;
      break;
    }
  }
  std::string path = absl::StrCat(base, "/", prefix, ".XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    perror(path.c_str());
    std::exit(1);
  }
  return path;
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &len) != 0) {
    perror("free_port");
    std::exit(1);
  }
  close(fd);
  return ntohs(address.sin_port);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace xce::e2e
