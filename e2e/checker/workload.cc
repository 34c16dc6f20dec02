#include "e2e/checker/workload.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace xce::e2e {
namespace {

constexpr int kRecentJobs = 6;        // most operations meet on these
constexpr int kOperationsALife = 60;  // then a client starts anew, as a process would

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

const char* word(xce_job_state_t state) {
  switch (state) {
    case XCE_JOB_PENDING: return "PENDING";
    case XCE_JOB_HELD: return "HELD";
    case XCE_JOB_KILLED: return "KILLED";
    default: return "OTHER";
  }
}

}  // namespace

// One client, that is one libxce context after the other.
class Workload::Worker {
 public:
  Worker(Workload* load, int number)
      : load_(*load),
        number_(number),
        random_(load->options_.seed * 1000 + static_cast<uint64_t>(number)) {}

  void run() {
    for (int n = 0; !load_.stopping_ && load_.operations_ < load_.options_.max_operations; ++n) {
      if (n % kOperationsALife == 0 || client_ == nullptr)
        client_ =
            std::make_unique<Client>(load_.masters_, number_ % 2 == 0 ? load_.options_.deadline_ms
                                                                      : load_.options_.hasty_ms);
      one();
      std::this_thread::sleep_for(milliseconds(pick(load_.options_.think_ms + 1)));
    }
  }

  void list() {
    std::vector<std::string> rows;
    xce_job_filter_t filter{};
    begin();
    xce_job_page_t* page = nullptr;
    if (xcecli_joblist(client_->ctx(), &filter, &page) < 0) return;
    const int64_t end = now_ns();
    const bool whole = page->next_after_id == 0;
    for (size_t i = 0; i < page->njobs; ++i) {
      const xce_job_t& job = page->jobs[i];
      rows.push_back(
          absl::StrCat("[", job.id, ",\"", job.spec.name, "\",\"", word(job.state), "\"]"));
    }
    xce_free_job_page(page);
    // Several pages are several reads; the workload stays below one page.
    if (whole) write("list", absl::StrCat(",\"jobs\":[", absl::StrJoin(rows, ","), "]"), "ok", end);
  }

  void open() { client_ = std::make_unique<Client>(load_.masters_, 20000); }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  void begin() { call_ = now_ns(); }
  void write(const char* op, const std::string& what, const char* outcome, int64_t end) {
    ++load_.operations_;
    load_.write_line(absl::StrCat("{\"client\":", number_, ",\"op\":\"", op, "\",\"call\":", call_,
                                  ",\"return\":", end, ",\"outcome\":\"", outcome, "\"", what,
                                  "}"));
  }

  void one() {
    const int dice = pick(100);
    Known job;
    bool some = false;
    {
      const std::lock_guard<std::mutex> lock(load_.mutex_);
      const int n = static_cast<int>(load_.known_.size());
      const int recent = dice % 8 == 0 ? n : std::min(n, kRecentJobs);
      some = n > 0;
      if (some) job = load_.known_[static_cast<size_t>(n - 1 - pick(recent))];
    }
    if (!some || dice < 12) {
      submit();
    } else if (dice < 17) {
      list();
    } else if (dice < 45) {
      info(job);
    } else if (dice < 68) {
      control("hold", XCE_JOBCTRL_HOLD, job);
    } else if (dice < 92) {
      control("release", XCE_JOBCTRL_RELEASE, job);
    } else {
      control("kill", XCE_JOBCTRL_KILL, job);
    }
  }

  void submit() {
    const bool again = !doubtful_.empty() && pick(2) == 0;
    std::string key;
    if (again) {  // as somebody does whose program died before it had the answer
      key = doubtful_.back();
      doubtful_.pop_back();
    } else if (!last_key_.empty() && pick(6) == 0) {
      key = last_key_;
    } else {
      const int n = load_.keys_++;
      if (n >= load_.options_.max_jobs) return;
      key = absl::StrCat("k", n);
    }
    last_key_ = key;
    const bool hold = key.back() % 2 == 0;
    xce_job_spec_t spec;
    xce_job_spec_init(&spec);
    const char* args[] = {"/bin/true"};
    spec.args = args;
    spec.nargs = 1;
    spec.name = key.c_str();
    spec.work_dir = load_.work_dir_.c_str();
    spec.submit_key = key.c_str();
    spec.hold = hold;
    xce_submitted_t out{};
    begin();
    const int rc = xcecli_jobsub(client_->ctx(), &spec, &out);
    const int64_t end = now_ns();
    const std::string what =
        absl::StrCat(",\"key\":\"", key, "\",\"hold\":", hold ? "true" : "false");
    if (rc >= 0) {
      write("submit",
            absl::StrCat(what, ",\"job\":", out.job_id,
                         ",\"existing\":", out.existing ? "true" : "false"),
            "ok", end);
      return load_.learn(out.job_id, key);
    }
    xce_error_t error;
    xcecli_last_error(&error);
    if (rc == -E_XCE_DUP_JOB) {
      write("submit", absl::StrCat(what, ",\"job\":", error.job_id), "dup", end);
      return load_.learn(error.job_id, key);
    }
    doubtful_.push_back(key);
    failed("submit", what, error, end);
  }

  void control(const char* op, xce_jobctrl_action_t action, const Known& job) {
    begin();
    const int rc = xcecli_jobctrl(client_->ctx(), &job.id, 1, action, 0, false);
    const int64_t end = now_ns();
    const std::string what = absl::StrCat(",\"key\":\"", job.key, "\",\"job\":", job.id);
    if (rc >= 0) return write(op, absl::StrCat(what, ",\"count\":", rc), "ok", end);
    xce_error_t error;
    xcecli_last_error(&error);
    failed(op, what, error, end);
  }

  void failed(const char* op, const std::string& what, const xce_error_t& error, int64_t end) {
    const int status = -error.status;
    if (error.outcome != XCE_NOT_APPLIED) {
      ++load_.unknown_;
      write(op, what, "unknown", end);
    } else if (status == E_XCE_INVALID || status == E_XCE_NOENT) {
      write(op, what, status == E_XCE_INVALID ? "refused" : "absent", end);
    } else {
      ++load_.not_applied_;
      write(op, what, "failed", end);
    }
  }

  void info(const Known& job) {
    begin();
    xce_job_page_t* page = nullptr;
    const int rc = xcecli_jobinfo(client_->ctx(), job.id, &page);
    const int64_t end = now_ns();
    const char* state = rc == -E_XCE_NOENT ? "ABSENT" : nullptr;
    std::string key = job.key;
    if (rc >= 0) {
      state = page->njobs == 1 ? word(page->jobs[0].state) : "ABSENT";
      if (page->njobs == 1) key = page->jobs[0].spec.name;
      xce_free_job_page(page);
    }
    if (state == nullptr) return;
    write("info",
          absl::StrCat(",\"key\":\"", key, "\",\"job\":", job.id, ",\"state\":\"", state, "\""),
          "ok", end);
  }

  Workload& load_;
  const int number_;
  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  std::vector<std::string> doubtful_;  // keys of submissions without a known outcome
  std::string last_key_;
  int64_t call_ = 0;
};

Workload::Workload(std::string masters, std::string work_dir, std::string history_path,
                   WorkloadOptions options)
    : masters_(std::move(masters)),
      work_dir_(std::move(work_dir)),
      options_(options),
      history_(fopen(history_path.c_str(), "w")) {}

Workload::~Workload() { stop(); }

void Workload::start() {
  for (int i = 0; i < options_.clients; ++i)
    threads_.emplace_back([this, i] { Worker(this, i).run(); });
}

void Workload::stop() {
  if (history_ == nullptr) return;
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  Worker last(this, options_.clients);
  last.open();
  last.list();
  fclose(history_);
  history_ = nullptr;
}

void Workload::write_line(const std::string& line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fprintf(history_, "%s\n", line.c_str());
}

void Workload::learn(uint64_t id, const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = known_.size(); i > 0; --i)
    if (known_[i - 1].key == key) return;
  known_.push_back({id, key});
}

}  // namespace xce::e2e
