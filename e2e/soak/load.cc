#include "e2e/soak/load.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace xce::e2e {
namespace {

constexpr int kDeadlineMs = 120000;
constexpr std::chrono::seconds kPatience{120};  // for what is repeated under a key
constexpr milliseconds kBetweenTries{100};
constexpr size_t kMaxFailures = 20;
// Exit codes of the command line (docs/cli.md).
constexpr int kNoLeader = 5, kOutcomeUnknown = 6, kWaitNoLeader = 125;
constexpr int kWaitEvery = 6;  // of the command line's jobs one is waited for
constexpr int kCurlRefused = 7;

std::string last_error() {
  xce_error_t error;
  xcecli_last_error(&error);
  return error.message;
}

}  // namespace

void Load::start() {
  for (const char* each : {"lib-1", "lib-2"}) {
    const std::string name = each;
    threads_.emplace_back([this, name] {
      Client client(options_.masters, kDeadlineMs, options_.tls);
      run(name, [&](Random* random) { library(&client, name, random); });
    });
  }
  threads_.emplace_back([this] {
    Client client(options_.masters, kDeadlineMs, options_.tls);
    run("operator", [&](Random* random) { operate(&client, random); });
  });
  threads_.emplace_back([this] {
    int turn = 0;
    run("cli", [&](Random* random) { command_line(random, turn++); });
  });
  for (const char* each : {"rest-1", "rest-2"}) {
    if (options_.api_address.empty()) break;
    const std::string name = each;
    threads_.emplace_back([this, name] {
      const Http http(options_.api_address, options_.token);
      int turn = 0;
      run(name, [&](Random* random) { rest(http, name, random, turn++); });
    });
  }
}

void Load::stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// One request after the other, with a pause between.
void Load::run(const std::string& name, const std::function<void(Random*)>& turn) {
  Random random(options_.seed * 1000 + std::hash<std::string>()(name) % 1000);
  while (!stopping_) {
    turn(&random);
    wait_until([this] { return stopping_.load(); },
               milliseconds(1 + random.below(static_cast<uint32_t>(options_.think_ms))));
  }
}

Load::Job Load::some_job(Random* random) {
  Job job;
  job.exit_code = random->below(10) == 0 ? 7 : 0;
  job.outcome = job.exit_code == 0 ? "COMPLETED" : "FAILED";
  job.requeue = options_.requeue && random->below(4) == 0;
  job.command =
      absl::StrCat(ledger_.signature(), absl::StrFormat("; sleep 0.%02d; ", random->below(40)),
                   ledger_.end_signature(), "; exit ", job.exit_code);
  return job;
}

void Load::library(Client* client, const std::string& name, Random* random) {
  const Job job = some_job(random);
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* args[] = {"/bin/sh", "-c", job.command.c_str()};
  spec.args = args;
  spec.nargs = 3;
  spec.name = name.c_str();
  spec.work_dir = options_.work_dir.c_str();
  spec.requeue = job.requeue;
  const uint32_t tasks[] = {0, 1, 2};
  spec.array = tasks;
  spec.narray = random->below(12) == 0 ? 3 : 0;
  const auto began = Clock::now();
  uint32_t count = 1;
  const int64_t id = client->submit(spec, &count);
  if (id < 0) return failed(name, absl::StrCat("submit: ", last_error()));
  booked(name, id, std::max(count, 1u), job, began);
}

// Makes a job that waits until it is released, or one that runs until it is killed, and does so.
void Load::operate(Client* client, Random* random) {
  const bool kill = random->below(2) == 0;
  Job job = some_job(random);
  job.requeue = false;
  if (kill) {
    job.command = "sleep 600";
    job.outcome = "KILLED";
  }
  xce_job_spec_t spec;
  xce_job_spec_init(&spec);
  const char* args[] = {"/bin/sh", "-c", job.command.c_str()};
  spec.args = args;
  spec.nargs = 3;
  spec.name = "operator";
  spec.work_dir = options_.work_dir.c_str();
  spec.hold = !kill;
  const auto began = Clock::now();
  const int64_t id = client->submit(spec);
  if (id < 0) return failed("operator", absl::StrCat("submit: ", last_error()));
  booked("operator", id, 1, job, began);
  if (kill) wait_until([this] { return stopping_.load(); }, milliseconds(random->below(500)));
  const uint64_t ids[] = {static_cast<uint64_t>(id)};
  const int rc = xcecli_jobctrl(client->ctx(), ids, 1,
                                kill ? XCE_JOBCTRL_KILL : XCE_JOBCTRL_RELEASE, 0, false);
  if (rc == 1) return;
  failed("operator", absl::StrCat(kill ? "kill" : "release", " of job ", id, ": ",
                                  rc < 0 ? last_error() : absl::StrCat("changed ", rc, " jobs")));
}

std::vector<std::string> Load::cli_environment() const {
  return {"XCE_MASTERS=" + options_.masters, "NO_COLOR=1", "XCE_TLS_CA=" + options_.tls.ca,
          "XCE_TLS_CERT=" + options_.tls.cert, "XCE_TLS_KEY=" + options_.tls.key};
}

void Load::command_line(Random* random, int turn) {
  const Job job = some_job(random);
  std::vector<std::string> args = {
      "submit", "--quiet", "--export-none", "--submit-key",   absl::StrCat("cli-", turn),
      "--name", "cli",     "--workdir",     options_.work_dir};
  if (job.requeue) args.push_back("--requeue");
  args.insert(args.end(), {"--", "/bin/sh", "-c", job.command});
  const auto began = Clock::now();
  Finished done;
  for (;;) {
    done = run_program(args);
    if ((done.code != kNoLeader && done.code != kOutcomeUnknown) ||
        Clock::now() - began > kPatience)
      break;
    again("cli");
  }
  if (done.code != 0) return failed("cli", absl::StrCat("submit: ", done.code, " ", done.err));
  if (booked("cli", std::atoll(done.out.c_str()), 1, job, began) &&
      turn % kWaitEvery == kWaitEvery - 1)
    wait_by_command_line(done.out.substr(0, done.out.find('\n')), job.exit_code);
}

void Load::wait_by_command_line(const std::string& id, int exit_code) {
  const auto began = Clock::now();
  for (;;) {
    const Finished done = run_program({"wait", "--timeout", "120", id});
    if (done.code == exit_code) return;
    if (done.code != kWaitNoLeader || Clock::now() - began > kPatience)
      return failed("cli", absl::StrCat("wait ", id, ": ", done.code, " ", done.err));
    again("cli");
  }
}

void Load::rest(const Http& http, const std::string& name, Random* random, int turn) {
  const Job job = some_job(random);
  const std::string body = nlohmann::json{
      {"name", name},
      {"command", {"/bin/sh", "-c", job.command}},
      {"work_dir", options_.work_dir},
      {"requeue", job.requeue}}.dump();
  const std::string key = absl::StrCat(name, "-", turn);
  const auto began = Clock::now();
  for (;;) {
    const HttpAnswer answer = http.call("POST", "/api/v1/jobs", body, key);
    if (answer.status == 200 || answer.status == 201) {
      booked(name, answer.body.value("id", int64_t{0}), 1, job, began);
      return;
    }
    const bool later = answer.status == 0 || answer.status == 503 || answer.status == 504;
    if (!later || Clock::now() - began > kPatience)
      return failed(
          name, absl::StrCat("POST: ", answer.status, " ", answer.text, ", curl ", answer.curl));
    const bool refused = answer.curl == kCurlRefused;
    again(name, refused, answer.status == 0 && !refused);
    wait_until([] { return false; }, kBetweenTries);
  }
}

Finished Load::run_program(const std::vector<std::string>& args) const {
  return e2e::run("cli/xce", args, cli_environment(), "", milliseconds(kDeadlineMs + 30000));
}

bool Load::booked(const std::string& name, int64_t id, uint32_t count, const Job& job,
                  Clock::time_point began) {
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  if (id <= 0) {
    failed(name, "an acknowledgement without a job's id");
    return false;
  }
  ledger_.acknowledged(static_cast<uint64_t>(id), count, job.outcome, job.requeue);
  const std::lock_guard<std::mutex> lock(mutex_);
  ClientBooks& books = books_[name];
  books.acknowledged += count;
  books.longest_ms = std::max(books.longest_ms, ms);
  return true;
}

void Load::failed(const std::string& name, const std::string& what) {
  ledger_.failed_call();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failures_.size() < kMaxFailures) failures_.push_back(absl::StrCat(name, ": ", what));
}

void Load::again(const std::string& name, bool refused, bool cut) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++books_[name].repeats;
  books_[name].refused += refused;
  books_[name].cut += cut;
}

std::vector<ClientBalance> Load::balance(const std::map<uint64_t, JobRow>& jobs) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ClientBalance> out;
  for (const auto& [name, books] : books_) {
    ClientBalance client;
    client.name = name;
    client.books = books;
    for (const auto& [id, job] : jobs) {
      if (job.name != name) continue;
      const bool waits = job.state == XCE_JOB_PENDING || job.state == XCE_JOB_HELD;
      ++(job.state >= XCE_JOB_COMPLETED ? client.finished
         : waits                        ? client.pending
                                        : client.running);
    }
    out.push_back(client);
  }
  return out;
}

std::vector<std::string> Load::failures() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failures_;
}

}  // namespace xce::e2e
