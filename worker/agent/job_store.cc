// See job_store.h.
#include "worker/agent/job_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/agent/users.h"
#include "worker/shepherd/process_tree.h"
#include "worker/shepherd/shepherd.h"

namespace xce::worker {
namespace {

constexpr size_t kMaxSpares = 256;

absl::Status failed(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat("cannot write ", what, ": ", std::strerror(error)));
}

absl::Status write_file(const std::string& path, const std::string& bytes, mode_t mode) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return failed(path, errno);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd);
      return failed(path, error);
    }
    done += static_cast<size_t>(n);
  }
  // A full disk may show only here on some file systems.
  return close(fd) == 0 ? absl::OkStatus() : failed(path, errno);
}

// Makes a directory and those above it.
absl::Status make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) return failed(part, errno);
    if (slash == std::string::npos) return absl::OkStatus();
  }
}

std::string value_of(const std::vector<std::string>& env, const std::string& name) {
  for (const std::string& entry : env) {
    if (entry.compare(0, name.size() + 1, name + "=") == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

void add_missing(std::vector<std::string>* env, const std::string& name, const std::string& value) {
  if (!value.empty() && value_of(*env, name).empty()) env->push_back(name + "=" + value);
}

void set_variable(std::vector<std::string>* env, const std::string& name,
                  const std::string& value) {
  const std::string begin = name + "=";
  env->erase(
      std::remove_if(env->begin(), env->end(),
                     [&](const std::string& e) { return e.compare(0, begin.size(), begin) == 0; }),
      env->end());
  if (!value.empty()) env->push_back(begin + value);
}

// Which generic resources of this host the job has: XCE_GRES_NAME=0,3 for each, and for gpus what
// CUDA goes by. A job that was submitted from within another one must not see that one's.
void tell_resources(const std::vector<Gres>& gres, std::vector<std::string>* env) {
  env->erase(std::remove_if(env->begin(), env->end(),
                            [](const std::string& e) { return e.rfind("XCE_GRES_", 0) == 0; }),
             env->end());
  for (const Gres& item : gres) {
    std::string name = item.name;
    for (char& c : name)
      c = absl::ascii_isalnum(static_cast<unsigned char>(c))
              ? absl::ascii_toupper(static_cast<unsigned char>(c))
              : '_';
    const std::string indices = absl::StrJoin(item.indices, ",");
    set_variable(env, "XCE_GRES_" + name, indices);
    if (item.name == "gpu") set_variable(env, "CUDA_VISIBLE_DEVICES", indices);
  }
}

// A directory of plain files and FIFOs.
void remove_directory(const std::string& path) {
  if (DIR* d = opendir(path.c_str())) {
    while (dirent* entry = readdir(d)) unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
  }
  rmdir(path.c_str());
}

}  // namespace

ShepherdSpec JobStore::spec_of(const Job& job) const {
  ShepherdSpec spec;
  spec.job = job.id;
  spec.array = job.array_id;
  spec.array_index = job.array_index;
  spec.attempt = job.attempt;
  spec.name = job.spec.name;
  spec.user = job.spec.user;
  spec.host = host_;
  std::vector<std::string> hosts;
  for (const Alloc& alloc : job.allocs) {
    hosts.push_back(alloc.host);
    if (alloc.host == host_) spec.cpus = alloc.cpus;
  }
  if (const Step* step = job.spec.step.get(); step != nullptr) {  // what is its job's, is its own
    spec.step_of = step->job;
    spec.step_attempt = step->attempt;
    spec.array = step->array_id;
    spec.array_index = step->array_index;
    spec.cpus = job.spec.cpus;
    hosts = step->hosts;
    spec.step_rank =
        static_cast<uint32_t>(std::find(hosts.begin(), hosts.end(), host_) - hosts.begin());
  }
  spec.node_list = absl::StrJoin(hosts, ",");
  if (job.spec.body != nullptr) {
    spec.has_script = !job.spec.body->script.empty();
    spec.args = job.spec.body->args;
    spec.env = job.spec.body->env;
  }
  for (const Alloc& alloc : job.allocs)
    if (alloc.host == host_) tell_resources(alloc.gres, &spec.env);
  spec.run_as = settings_.run_as_users;
  if (spec.run_as) {
    const UserOnHost user = look_up_user(job.spec.uid, job.spec.gid);
    spec.uid = job.spec.uid;
    spec.gid = job.spec.gid;
    spec.groups = user.groups;
    add_missing(&spec.env, "HOME", user.home);
    add_missing(&spec.env, "USER", user.name);
    add_missing(&spec.env, "LOGNAME", user.name);
    add_missing(&spec.env, "SHELL", user.shell);
  }
  spec.work_dir = job.spec.work_dir;
  if (spec.work_dir.empty()) spec.work_dir = value_of(spec.env, "HOME");
  if (spec.work_dir.empty()) spec.work_dir = "/tmp";
  spec.stdin_path = job.spec.stdin_path;
  spec.stdout_path = job.spec.stdout_path;
  spec.stderr_path = job.spec.stderr_path;
  spec.memory_mb = job.spec.memory_mb;
  spec.time_limit_s = job.spec.time_limit_s;
  spec.warn_signal = job.spec.warn_signal;
  spec.warn_before_s = job.spec.warn_before_s;
  spec.leased = job.spec.requeue;
  spec.cgroups = settings_.cgroups;
  spec.limit_cpus = settings_.limit_cpus;
  spec.max_processes = settings_.max_processes;
  return spec;
}

absl::Status JobStore::prepare() {
  absl::Status status = make_directories(data_dir_ + "/jobs");
  if (!status.ok()) return status;
  // Spares are of this run only: what an earlier one left is removed.
  if (DIR* d = opendir((data_dir_ + "/spare").c_str())) {
    while (dirent* entry = readdir(d)) {
      if (entry->d_name[0] != '.') remove_directory(data_dir_ + "/spare/" + entry->d_name);
    }
    closedir(d);
  }
  status = make_directories(data_dir_ + "/spare");
  if (!status.ok()) return status;
  if (mkfifo(events_fifo().c_str(), 0600) != 0 && errno != EEXIST)
    return failed(events_fifo(), errno);
  return absl::OkStatus();
}

absl::Status JobStore::create(Key key, const Job& job, uint64_t lease_epoch) {
  const std::string path = dir(key);
  if (!spares_.empty()) {
    if (rename(spare_dir(spares_.back()).c_str(), path.c_str()) != 0) {
      spdlog::warn("cannot use {} again: {}", spare_dir(spares_.back()), std::strerror(errno));
    }
    spares_.pop_back();
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed(path, errno);
  ShepherdSpec spec = spec_of(job);
  spec.lease_epoch = lease_epoch;
  // Another user must reach the script, and nothing else here.
  if (chmod(path.c_str(), spec.run_as ? 0711 : 0700) != 0) return failed(path, errno);
  if (spec.has_script) {
    const std::string script = path + "/" + kScriptFile;
    absl::Status status = write_file(script, job.spec.body->script, 0700);
    if (!status.ok()) return status;
    if (spec.run_as && chown(script.c_str(), spec.uid, spec.gid) != 0) return failed(script, errno);
  }
  const std::string control = path + "/" + kControlFifo;
  if (mkfifo(control.c_str(), 0600) != 0 && errno != EEXIST) return failed(control, errno);
  return write_file(path + "/" + kSpecFile, encode_spec(spec), 0600);
}

Key JobStore::part_of(Key key) const {
  ShepherdSpec spec;
  decode_spec(read_small_file(dir(key) + "/" + kSpecFile), &spec);
  return Key{spec.step_of, spec.step_attempt};
}

Status JobStore::read_status(Key key) const {
  return decode_status({key.job, key.attempt}, read_small_file(dir(key) + "/" + kStatusFile));
}

bool JobStore::launched(Key key) const {
  return access((dir(key) + "/" + kStatusFile).c_str(), F_OK) == 0;
}

bool JobStore::alive(Key key) const { return shepherd_alive(dir(key)); }

absl::Status JobStore::send(const Order& order) const {
  std::string line;
  switch (order.control) {
    case Control::kKill: line = absl::StrCat("kill ", order.signal, "\n"); break;
    case Control::kSuspend: line = "suspend\n"; break;
    case Control::kResume: line = "resume\n"; break;
    case Control::kLimit: line = absl::StrCat("limit ", order.time_limit_s, "\n"); break;
  }
  const std::string path = dir(order.key) + "/" + kControlFifo;
  const int fd = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return failed(path, errno);
  const bool ok = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  close(fd);
  return ok ? absl::OkStatus() : failed(path, error);
}

bool JobStore::keep_spare(Key key) {
  if (spares_.size() >= kMaxSpares) return false;
  const std::string path = dir(key);
  unlink((path + "/" + kScriptFile).c_str());
  const std::string status = path + "/" + kStatusFile;
  if (truncate((path + "/" + kSpecFile).c_str(), 0) != 0) return false;
  if (rename(status.c_str(), (path + "/" + kSpareStatusFile).c_str()) != 0 && errno != ENOENT) {
    return false;
  }
  if (rename(path.c_str(), spare_dir(next_spare_).c_str()) != 0) return false;
  spares_.push_back(next_spare_++);
  return true;
}

void JobStore::remove(Key key) {
  if (!keep_spare(key)) remove_directory(dir(key));
}

std::vector<Key> JobStore::scan() const {
  std::vector<Key> keys;
  DIR* d = opendir((data_dir_ + "/jobs").c_str());
  if (d == nullptr) return keys;
  while (dirent* entry = readdir(d)) {
    Key key;
    if (parse_dir_name(entry->d_name, &key.job, &key.attempt)) keys.push_back(key);
  }
  closedir(d);
  return keys;
}

}  // namespace xce::worker
