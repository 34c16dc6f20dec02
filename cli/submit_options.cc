#include "cli/submit_options.h"

#include <xce/client.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cli/script.h"

namespace xce::cli {
namespace {

constexpr size_t kMaxRequestBytes =
    4 * 1024 * 1024 - 64 * 1024;  // a frame of the protocol, with room for the rest

// A CLI11 check from one of our parsers: "" when the text is right, else the words.
template <typename Parser>
CLI::Validator checked_by(Parser parser) {
  return CLI::Validator(
      [parser](std::string& text) -> std::string {
        const auto parsed = parser(text);
        return parsed.ok() ? std::string() : std::string(parsed.status().message());
      },
      "");
}

CLI::Validator number(int64_t min, int64_t max) {
  return checked_by([min, max](const std::string& text) { return parse_number(text, min, max); });
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) -> std::string { return text.empty() ? "must not be empty" : ""; }, "");
}

CLI::Validator job_refs() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        for (const std::string& part : split_commas(text)) {
          const auto ref = parse_job_ref(part);
          if (!ref.ok()) return std::string(ref.status().message());
        }
        return "";
      },
      "");
}

CLI::Validator env_words() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() || text[0] == '=' ? "write KEY=VALUE, or KEY for its value here" : "";
      },
      "");
}

// A flag and its opposite, with which the command line takes back what a script asks for.
void add_flag(CLI::App* app, const char* name, const char* opposite, std::optional<bool>* out,
              const std::string& help) {
  app->add_flag_callback(
      name, [out] { *out = true; }, absl::StrCat(help, " (", opposite, " takes it back)"));
  app->add_flag_callback(opposite, [out] { *out = false; })->group("");  // not listed
}

template <typename T>
const std::optional<T>& first(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() ? a : b;
}

std::vector<std::string> both(const std::vector<std::string>& first_part,
                              const std::vector<std::string>& second) {
  std::vector<std::string> out = first_part;
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

// Words of a CLI11 error, in one line.
std::string words_of(const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void add_submit_options(CLI::App* app, SubmitOptions* out) {
  const auto option = [&](const char* names, std::optional<std::string>* target, const char* help,
                          const char* type) {
    return app->add_option(names, *target, help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  const auto list = [&](const char* names, std::vector<std::string>* target, const char* help,
                        const char* type) {
    return app->add_option(names, *target, help)
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();
  option("-n,--name", &out->name, "name of the job (default: of the script or command)", "NAME")
      ->check(not_empty());
  option("-q,--queue", &out->queue, "queue (default: the cluster's)", "QUEUE")->check(not_empty());
  option("-c,--cpus", &out->cpus, "processors on each host", "N")->check(number(1, kMax32));
  option("-N,--nodes", &out->nodes, "hosts", "N")->check(number(1, kMax32));
  option("-m,--memory", &out->memory, "memory on each host: 512 (MiB), 2G, 1.5G", "SIZE")
      ->check(checked_by(parse_memory_mb));
  list("--gres", &out->gres, "other resources on each host: gpu:1", "NAME:N")
      ->check(checked_by(parse_gres));
  option("-t,--time", &out->time, "time limit: 90, 10:00, 1:00:00, 1-00:00:00, 10m, 2h", "TIME")
      ->check(checked_by(parse_duration_s));
  option("--warn", &out->warn, "send a signal before the time limit: USR1@30", "SIG@TIME")
      ->check(checked_by(parse_warning));
  option("-a,--array", &out->array, "one task for each index: 0-9, 1,3,5, 0-9:2, 0-99%4", "SPEC")
      ->check(checked_by(parse_array));
  option("-p,--priority", &out->priority, "higher starts earlier", "N")
      ->check(number(-kMax32, kMax32));
  option("-i,--input", &out->input, "standard input", "PATH")->check(not_empty());
  option("-o,--output", &out->output,
         "standard output: %j job, %A array, %a index, %x name, %u user (default xce-%j.out)",
         "PATH")
      ->check(not_empty());
  option("-e,--error", &out->error, "standard error (default: with the output)", "PATH")
      ->check(not_empty());
  option("-D,--workdir", &out->workdir, "working directory (default: this one)", "DIR")
      ->check(not_empty());
  list("--env", &out->env, "add to the environment; KEY alone takes its value here", "KEY=VALUE")
      ->check(env_words());
  add_flag(app, "--export-none", "--export-all", &out->export_none,
           "do not pass this environment on");
  add_flag(app, "--hold", "--no-hold", &out->hold, "do not start it before 'xce release'");
  add_flag(app, "--requeue", "--no-requeue", &out->requeue, "start it again when its host is lost");
  add_flag(app, "--exclusive", "--no-exclusive", &out->exclusive,
           "share its hosts with no other job");
  list("--after", &out->after, "start after these jobs have started", "ID,...")->check(job_refs());
  list("--afterok", &out->afterok, "start after these jobs have completed", "ID,...")
      ->check(job_refs());
  list("--afternotok", &out->afternotok, "start after these jobs have failed", "ID,...")
      ->check(job_refs());
  list("--afterany", &out->afterany, "start after these jobs have ended", "ID,...")
      ->check(job_refs());
  add_flag(app, "--singleton", "--no-singleton", &out->singleton,
           "one job of this name and user at a time");
  option("--submit-key", &out->submit_key, "two submissions of one key are one job", "KEY")
      ->check(not_empty());
  option("--comment", &out->comment, "a note to keep with the job", "TEXT");
}

SubmitOptions merge(const SubmitOptions& over, const SubmitOptions& under) {
  SubmitOptions out = over;
  for (auto field :
       {&SubmitOptions::name, &SubmitOptions::queue, &SubmitOptions::cpus, &SubmitOptions::nodes,
        &SubmitOptions::memory, &SubmitOptions::time, &SubmitOptions::warn, &SubmitOptions::array,
        &SubmitOptions::input, &SubmitOptions::output, &SubmitOptions::error,
        &SubmitOptions::workdir, &SubmitOptions::priority, &SubmitOptions::submit_key,
        &SubmitOptions::comment}) {
    out.*field = first(over.*field, under.*field);
  }
  for (auto field : {&SubmitOptions::singleton, &SubmitOptions::hold, &SubmitOptions::requeue,
                     &SubmitOptions::exclusive, &SubmitOptions::export_none}) {
    out.*field = first(over.*field, under.*field);
  }
  for (auto field : {&SubmitOptions::env, &SubmitOptions::after, &SubmitOptions::afterok,
                     &SubmitOptions::afternotok, &SubmitOptions::afterany}) {
    out.*field = both(under.*field, over.*field);
  }
  if (over.gres.empty()) out.gres = under.gres;
  return out;
}

absl::StatusOr<SubmitOptions> options_of_script(const std::string& name, const std::string& bytes) {
  const absl::StatusOr<Directives> directives = read_directives(name, bytes);
  if (!directives.ok()) return directives.status();
  SubmitOptions all;
  for (const Directive& line : directives->lines) {
    SubmitOptions given;
    CLI::App app("#XCE", "#XCE");
    app.set_help_flag();
    app.allow_extras();
    add_submit_options(&app, &given);
    std::vector<std::string> words(line.words.rbegin(),
                                   line.words.rend());  // CLI11 takes them from the back
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", line.line, ": #XCE ",
                                                     words_of(error), "; see 'xce submit --help'"));
    }
    const std::vector<std::string> extras = app.remaining();
    if (!extras.empty()) {
      std::vector<std::string> known;
      for (const CLI::Option* option : app.get_options()) {
        for (const std::string& word : option->get_lnames()) known.push_back("--" + word);
      }
      const std::string hint = nearest(extras[0], known);
      return absl::InvalidArgumentError(absl::StrCat(
          name, ":", line.line, ": #XCE does not know ", extras[0],
          hint.empty() ? "" : "; did you mean " + hint + "?", "; see 'xce submit --help'"));
    }
    all = merge(given, all);
  }
  return all;
}

JobSpecHolder::JobSpecHolder() {
  xce_job_spec_init(&spec_);
  spec_.cpus = 1;
  spec_.nodes = 1;
}

absl::Status JobSpecHolder::set_options(const SubmitOptions& o) {
  constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();
  // Every value has passed its check: .value() cannot fail.
  name_ = o.name.value_or("");
  queue_ = o.queue.value_or("");
  stdin_ = o.input.value_or("");
  stdout_ = o.output.value_or("");
  stderr_ = o.error.value_or("");
  work_dir_ = o.workdir.value_or("");
  submit_key_ = o.submit_key.value_or("");
  comment_ = o.comment.value_or("");
  if (o.cpus) spec_.cpus = static_cast<uint32_t>(parse_number(*o.cpus, 1, kMax32).value());
  if (o.nodes) spec_.nodes = static_cast<uint32_t>(parse_number(*o.nodes, 1, kMax32).value());
  if (o.memory) spec_.memory_mb = parse_memory_mb(*o.memory).value();
  if (o.priority)
    spec_.priority = static_cast<int32_t>(parse_number(*o.priority, -kMax32, kMax32).value());
  if (o.time) spec_.time_limit_s = parse_duration_s(*o.time).value();
  if (o.warn) {
    const Warning warning = parse_warning(*o.warn).value();
    spec_.warn_signal = warning.signal;
    spec_.warn_before_s = warning.before_s;
    if (spec_.time_limit_s != 0 && warning.before_s >= spec_.time_limit_s) {
      return absl::InvalidArgumentError(
          "--warn comes before the job starts; warn later than the time limit is long");
    }
  }
  if (o.array) {
    ArraySpec array = parse_array(*o.array).value();
    array_ = std::move(array.indices);
    spec_.array_limit = array.limit;
  }
  for (const std::string& text : o.gres) {
    const auto items = parse_gres(text).value();
    gres_.insert(gres_.end(), items.begin(), items.end());
  }
  spec_.hold = o.hold.value_or(false);
  spec_.requeue = o.requeue.value_or(false);
  spec_.exclusive = o.exclusive.value_or(false);
  const std::pair<xce_dependency_kind_t, const std::vector<std::string>*> kinds[] = {
      {XCE_DEP_AFTER, &o.after},
      {XCE_DEP_AFTEROK, &o.afterok},
      {XCE_DEP_AFTERNOTOK, &o.afternotok},
      {XCE_DEP_AFTERANY, &o.afterany}};
  for (const auto& [kind, texts] : kinds) {
    for (const std::string& text : *texts) {
      for (const std::string& part : split_commas(text))
        dependency_refs_.push_back({kind, parse_job_ref(part).value()});
    }
  }
  if (o.singleton.value_or(false)) add_dependency(XCE_DEP_SINGLETON, 0);
  return absl::OkStatus();
}

void JobSpecHolder::set_what(std::string script, std::vector<std::string> args) {
  script_ = std::move(script);
  args_ = std::move(args);
}

void JobSpecHolder::set_default_name(const std::string& name) {
  if (name_.empty()) name_ = name.substr(name.rfind('/') + 1);
}

absl::Status JobSpecHolder::set_environment(const SubmitOptions& options,
                                            const char* const* environ) {
  env_.clear();
  const auto put = [&](const std::string& entry) {
    const size_t key_len = entry.find('=') + 1;
    for (std::string& old : env_) {
      if (old.compare(0, key_len, entry, 0, key_len) == 0) {
        old = entry;
        return;
      }
    }
    env_.push_back(entry);
  };
  if (!options.export_none.value_or(false)) {
    for (; environ != nullptr && *environ != nullptr; ++environ) {
      if (std::strchr(*environ, '=') != nullptr) env_.push_back(*environ);
    }
  }
  for (const std::string& text : options.env) {
    if (text.find('=') != std::string::npos) {
      put(text);
      continue;
    }
    const char* value = std::getenv(text.c_str());
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--env ", text, ": no such variable here; write ", text, "=VALUE"));
    }
    put(text + "=" + value);
  }
  return absl::OkStatus();
}

absl::Status JobSpecHolder::set_step(const SubmitOptions& o, uint64_t job,
                                     std::vector<std::string> hosts) {
  const std::pair<const char*, bool> not_of_a_step[] = {
      {"--queue", o.queue.has_value()},
      {"--cpus", o.cpus.has_value()},
      {"--nodes", o.nodes.has_value()},
      {"--memory", o.memory.has_value()},
      {"--gres", !o.gres.empty()},
      {"--array", o.array.has_value()},
      {"--priority", o.priority.has_value()},
      {"--hold", o.hold.has_value()},
      {"--requeue", o.requeue.has_value()},
      {"--exclusive", o.exclusive.has_value()},
      {"--singleton", o.singleton.has_value()},
      {"--after...",
       !o.after.empty() || !o.afterok.empty() || !o.afternotok.empty() || !o.afterany.empty()}};
  for (const auto& [name, given] : not_of_a_step) {
    if (given)
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is for jobs of their own; what runs inside job ", job,
                       " starts at once and has what that job has"));
  }
  spec_.step.job_id = job;
  step_hosts_ = std::move(hosts);
  return absl::OkStatus();
}

void JobSpecHolder::set_current_dir(const std::string& dir) {
  if (work_dir_.empty()) {
    work_dir_ = dir;
  } else if (work_dir_[0] != '/') {
    work_dir_ = dir + "/" + work_dir_;
  }
}

absl::StatusOr<const xce_job_spec_t*> JobSpecHolder::spec() {
  const auto given = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
  spec_.name = given(name_);
  spec_.queue = given(queue_);
  spec_.work_dir = given(work_dir_);
  spec_.stdin_path = given(stdin_);
  spec_.stdout_path = given(stdout_);
  spec_.stderr_path = given(stderr_);
  spec_.submit_key = given(submit_key_);
  spec_.comment = given(comment_);
  spec_.script = script_.empty() ? nullptr : script_.data();
  spec_.script_len = script_.size();
  size_t bytes = script_.size() + array_.size() * sizeof(uint32_t);
  const auto point = [&bytes](const std::vector<std::string>& items,
                              std::vector<const char*>* out) {
    out->clear();
    for (const std::string& item : items) {
      out->push_back(item.c_str());
      bytes += item.size() + 16;
    }
  };
  point(args_, &arg_pointers_);
  point(env_, &env_pointers_);
  if (bytes > kMaxRequestBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("script, arguments and environment have ", bytes,
                     " bytes together, more than the limit of ", kMaxRequestBytes,
                     "; keep data in files, or leave the environment out with --export-none"));
  }
  spec_.args = arg_pointers_.data();
  spec_.nargs = arg_pointers_.size();
  spec_.env = env_pointers_.data();
  spec_.nenv = env_pointers_.size();
  gres_c_.clear();
  for (const auto& [name, count] : gres_) gres_c_.push_back({name.c_str(), count, nullptr, 0});
  spec_.gres = gres_c_.data();
  spec_.ngres = gres_c_.size();
  spec_.array = array_.data();
  spec_.narray = array_.size();
  point(step_hosts_, &step_pointers_);
  spec_.step.hosts = step_pointers_.data();
  spec_.step.nhosts = step_pointers_.size();
  spec_.dependencies = dependencies_.data();
  spec_.ndependencies = dependencies_.size();
  return &spec_;
}

}  // namespace xce::cli
