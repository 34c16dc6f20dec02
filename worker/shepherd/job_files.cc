// See job_files.h.
#include "worker/shepherd/job_files.h"

#include <charconv>
#include <cstdlib>

#include "worker/shepherd/record.h"

namespace xce::worker {
namespace {

// A name as part of a file name: it must not lead elsewhere.
std::string one_component(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return name;
}

Record record_of(AttemptName name) {
  Record r;
  r.add_unsigned("job", name.job);
  r.add_unsigned("attempt", name.attempt);
  return r;
}

}  // namespace

std::string encode_spec(const ShepherdSpec& spec) {
  Record r;
  r.add_unsigned("job", spec.job);
  r.add_unsigned("array", spec.array);
  r.add_unsigned("array_index", spec.array_index);
  r.add_unsigned("attempt", spec.attempt);
  r.add_unsigned("step_of", spec.step_of);
  r.add_unsigned("step_attempt", spec.step_attempt);
  r.add_unsigned("step_rank", spec.step_rank);
  r.add("name", spec.name);
  r.add("user", spec.user);
  r.add("host", spec.host);
  r.add("node_list", spec.node_list);
  r.add_unsigned("has_script", spec.has_script ? 1 : 0);
  for (const std::string& arg : spec.args) r.add("arg", arg);
  for (const std::string& entry : spec.env) r.add("env", entry);
  r.add("work_dir", spec.work_dir);
  r.add("stdin_path", spec.stdin_path);
  r.add("stdout_path", spec.stdout_path);
  r.add("stderr_path", spec.stderr_path);
  r.add_unsigned("cpus", spec.cpus);
  r.add_unsigned("memory_mb", spec.memory_mb);
  r.add_unsigned("time_limit_s", spec.time_limit_s);
  r.add_unsigned("warn_signal", spec.warn_signal);
  r.add_unsigned("warn_before_s", spec.warn_before_s);
  r.add_unsigned("kill_wait_ms", spec.kill_wait_ms);
  for (const std::string& cgroup : spec.cgroups) r.add("cgroup", cgroup);
  r.add_unsigned("limit_cpus", spec.limit_cpus ? 1 : 0);
  r.add_unsigned("max_processes", spec.max_processes);
  r.add_unsigned("leased", spec.leased ? 1 : 0);
  r.add_unsigned("lease_epoch", spec.lease_epoch);
  r.add_unsigned("run_as", spec.run_as ? 1 : 0);
  r.add_unsigned("uid", spec.uid);
  r.add_unsigned("gid", spec.gid);
  for (const uint32_t group : spec.groups) r.add("group", int64_t{group});
  return r.encode();
}

bool decode_spec(std::string_view bytes, ShepherdSpec* spec) {
  std::vector<Record> records;
  decode_records(bytes, &records);
  if (records.size() != 1) return false;
  const Record& r = records.front();
  spec->job = r.unsigned_number("job");
  spec->array = r.unsigned_number("array");
  spec->array_index = static_cast<uint32_t>(r.unsigned_number("array_index"));
  spec->attempt = static_cast<uint32_t>(r.unsigned_number("attempt"));
  spec->step_of = r.unsigned_number("step_of");
  spec->step_attempt = static_cast<uint32_t>(r.unsigned_number("step_attempt"));
  spec->step_rank = static_cast<uint32_t>(r.unsigned_number("step_rank"));
  spec->name = r.text("name");
  spec->user = r.text("user");
  spec->host = r.text("host");
  spec->node_list = r.text("node_list");
  spec->has_script = r.unsigned_number("has_script") != 0;
  spec->args = r.list("arg");
  spec->env = r.list("env");
  spec->work_dir = r.text("work_dir");
  spec->stdin_path = r.text("stdin_path");
  spec->stdout_path = r.text("stdout_path");
  spec->stderr_path = r.text("stderr_path");
  spec->cpus = static_cast<uint32_t>(r.unsigned_number("cpus"));
  spec->memory_mb = r.unsigned_number("memory_mb");
  spec->time_limit_s = static_cast<uint32_t>(r.unsigned_number("time_limit_s"));
  spec->warn_signal = static_cast<uint32_t>(r.unsigned_number("warn_signal"));
  spec->warn_before_s = static_cast<uint32_t>(r.unsigned_number("warn_before_s"));
  spec->kill_wait_ms = static_cast<uint32_t>(r.unsigned_number("kill_wait_ms"));
  spec->cgroups = r.list("cgroup");
  spec->limit_cpus = r.unsigned_number("limit_cpus") != 0;
  spec->max_processes = static_cast<uint32_t>(r.unsigned_number("max_processes"));
  spec->leased = r.unsigned_number("leased") != 0;
  spec->lease_epoch = r.unsigned_number("lease_epoch");
  spec->run_as = r.unsigned_number("run_as") != 0;
  spec->uid = static_cast<uint32_t>(r.unsigned_number("uid"));
  spec->gid = static_cast<uint32_t>(r.unsigned_number("gid"));
  spec->groups.clear();
  for (const std::string& group : r.list("group"))
    spec->groups.push_back(static_cast<uint32_t>(std::strtoul(group.c_str(), nullptr, 10)));
  return spec->job != 0;
}

std::string encode_started(AttemptName name, const StatusStarted& started) {
  Record r = record_of(name);
  r.add("kind", "started");
  r.add("shepherd_pid", static_cast<int64_t>(started.shepherd_pid));
  r.add_unsigned("shepherd_start_ticks", started.shepherd_start_ticks);
  r.add("pid", static_cast<int64_t>(started.pid));
  r.add_unsigned("start_ticks", started.start_ticks);
  r.add("boot_id", started.boot_id);
  r.add("time_ms", started.time_ms);
  r.add("stdout_file", started.stdout_file);
  r.add("stderr_file", started.stderr_file);
  return r.encode();
}

std::string encode_exit(AttemptName name, const StatusExit& exit) {
  Record r = record_of(name);
  r.add("kind", "exit");
  r.add("time_ms", exit.time_ms);
  r.add("outcome", exit.outcome);
  r.add("exit_code", static_cast<int64_t>(exit.exit_code));
  r.add_unsigned("exit_signal", exit.exit_signal);
  r.add_unsigned("cpu_ms", exit.cpu_ms);
  r.add_unsigned("peak_memory_kb", exit.peak_memory_kb);
  r.add_unsigned("wall_ms", exit.wall_ms);
  r.add("message", exit.message);
  return r.encode();
}

std::string encode_change(AttemptName name, const StatusChange& change) {
  Record r = record_of(name);
  r.add("kind", change.suspended ? "suspended" : "resumed");
  r.add("time_ms", change.time_ms);
  return r.encode();
}

Status decode_status(AttemptName name, std::string_view bytes) {
  std::vector<Record> records;
  decode_records(bytes, &records);
  Status status;
  for (const Record& r : records) {
    if (r.unsigned_number("job") != name.job || r.unsigned_number("attempt") != name.attempt)
      continue;
    const std::string_view kind = r.text("kind");
    if (kind == "started") {
      StatusStarted s;
      s.shepherd_pid = static_cast<int32_t>(r.number("shepherd_pid"));
      s.shepherd_start_ticks = r.unsigned_number("shepherd_start_ticks");
      s.pid = static_cast<int32_t>(r.number("pid"));
      s.start_ticks = r.unsigned_number("start_ticks");
      s.boot_id = r.text("boot_id");
      s.time_ms = r.number("time_ms");
      s.stdout_file = r.text("stdout_file");
      s.stderr_file = r.text("stderr_file");
      status.started = s;
    } else if (kind == "suspended" || kind == "resumed") {
      status.changes.push_back({kind == "suspended", r.number("time_ms")});
    } else if (kind == "exit") {
      StatusExit e;
      e.time_ms = r.number("time_ms");
      e.outcome = r.text("outcome");
      e.exit_code = static_cast<int32_t>(r.number("exit_code"));
      e.exit_signal = static_cast<uint32_t>(r.unsigned_number("exit_signal"));
      e.cpu_ms = r.unsigned_number("cpu_ms");
      e.peak_memory_kb = r.unsigned_number("peak_memory_kb");
      e.wall_ms = r.unsigned_number("wall_ms");
      e.message = r.text("message");
      status.exit = e;
    }
  }
  return status;
}

std::string output_path(const ShepherdSpec& spec, std::string_view pattern) {
  if (pattern.empty()) pattern = spec.array != 0 ? "xce-%A_%a.out" : "xce-%j.out";
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path.push_back(pattern[i]);
      continue;
    }
    switch (pattern[++i]) {
      case 'j': path += std::to_string(spec.job); break;
      case 'A': path += std::to_string(spec.array != 0 ? spec.array : spec.job); break;
      case 'a': path += std::to_string(spec.array_index); break;
      case 'x': path += one_component(spec.name); break;
      case 'u': path += one_component(spec.user); break;
      case '%': path.push_back('%'); break;
      default:  // not ours: leave it as it was written
        path.push_back('%');
        path.push_back(pattern[i]);
    }
  }
  if (!path.empty() && path.front() == '/') return path;
  const bool slash = !spec.work_dir.empty() && spec.work_dir.back() == '/';
  return spec.work_dir + (slash ? "" : "/") + path;
}

std::string dir_name(uint64_t job, uint32_t attempt) {
  return std::to_string(job) + "." + std::to_string(attempt);
}

bool parse_dir_name(std::string_view name, uint64_t* job, uint32_t* attempt) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return false;
  const char* end = name.data() + name.size();
  auto first = std::from_chars(name.data(), name.data() + dot, *job);
  auto second = std::from_chars(name.data() + dot + 1, end, *attempt);
  return first.ec == std::errc() && first.ptr == name.data() + dot && second.ec == std::errc() &&
         second.ptr == end;
}

}  // namespace xce::worker
