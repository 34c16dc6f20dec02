// What a simulated machine gives its Node: see controller/consensus/surroundings.h.
#include "controller/consensus/surroundings.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/snapshot_file.h"
#include "controller/sim/machine.h"
#include "controller/sim/sim_transport.h"

namespace xce::sim {
namespace {

using consensus::LogWriter;
using consensus::SnapshotInstaller;
using consensus::SnapshotMeta;
using consensus::SnapshotStep;

class Timer final : public consensus::Surroundings::Timer {
 public:
  Timer(Machine* machine, std::function<void()> fire)
      : machine_(machine), id_(machine->add_timer(std::move(fire))) {}
  ~Timer() override { machine_->remove_timer(id_); }
  void start(uint64_t delay_ms) override { machine_->start_timer(id_, delay_ms); }
  void stop() override { machine_->stop_timer(id_); }

 private:
  Machine* const machine_;
  const uint64_t id_;
};

class Turns final : public consensus::Surroundings::Turns {
 public:
  Turns(Machine* machine, std::function<void()> flush, std::function<void()> more)
      : machine_(machine) {
    machine_->set_turns(std::move(flush), std::move(more));
  }
  ~Turns() override {
    if (!machine_->up()) return;
    machine_->set_busy(false);
    machine_->set_turns(nullptr, nullptr);
  }
  void set_busy(bool busy) override { machine_->set_busy(busy); }

 private:
  Machine* const machine_;
};

class Waker final : public consensus::Surroundings::Waker {
 public:
  Waker(Machine* machine, std::function<void()> run) : machine_(machine), call_(new Call) {
    call_->run = std::move(run);
  }
  ~Waker() override { call_->run = nullptr; }
  void wake() override {
    if (std::exchange(call_->due, true)) return;
    machine_->post([call = call_] {
      call->due = false;
      if (call->run) call->run();
    });
  }

 private:
  struct Call {
    std::function<void()> run;
    bool due = false;
  };
  Machine* const machine_;
  const std::shared_ptr<Call> call_;
};

// The disk's thread.
struct Writing : std::enable_shared_from_this<Writing> {
  Machine* machine = nullptr;
  LogWriter* writer = nullptr;
  bool busy = false;

  void ask() {
    if (std::exchange(busy, true)) return;
    const auto self = shared_from_this();
    machine->set_disk_write([self] { self->writer->write_some(); });
    machine->work_after(machine->disk_delay(), [self] {
      self->busy = false;
      self->machine->set_disk_write(nullptr);
      if (self->writer->write_some() && self->writer->backlog() > 0) self->ask();
    });
  }
};

// The installer's thread.
struct Installing : std::enable_shared_from_this<Installing> {
  Machine* machine = nullptr;
  SnapshotInstaller* installer = nullptr;
  bool busy = false;

  void ask() {
    if (installer != nullptr && !installer->has_work()) return;
    if (std::exchange(busy, true)) return;
    machine->work_after(machine->disk_delay(), [self = shared_from_this()] {
      self->busy = false;
      self->installer->work();
      if (self->installer->has_work()) self->ask();
    });
  }
};

// The child process that writes a snapshot; in four steps, each some time after the one before.
class Taker final : public consensus::SnapshotTaker {
 public:
  Taker(Machine* machine, std::string directory, std::function<int(SnapshotStep)> hook)
      : machine_(machine), directory_(std::move(directory)), hook_(std::move(hook)) {}
  ~Taker() override { cancel(); }

  absl::Status start(const SnapshotMeta& meta, const Save& save) override {
    meta_ = meta;
    state_.clear();
    save([this](std::string_view bytes) {
      state_.append(bytes.data(), bytes.size());
      return true;
    });
    child_ = std::make_shared<Child>();
    ended_.reset();
    next_step(child_, 0);
    return absl::OkStatus();
  }
  bool busy() const override { return child_ != nullptr; }
  const SnapshotMeta& meta() const override { return meta_; }
  std::optional<absl::Status> poll() override {
    if (ended_) child_ = nullptr;
    return std::exchange(ended_, std::nullopt);
  }
  void cancel() override {
    if (child_ == nullptr) return;
    child_->killed = true;
    if (child_->fd >= 0) fs()->close(child_->fd);
    child_ = nullptr;
    ended_.reset();
    (void)fs()->unlink(temporary());
  }

 private:
  struct Child {
    bool killed = false;
    int fd = -1;
    uint64_t at = 0;
    uint32_t chain = 0;
  };

  Disk* fs() { return &machine_->disk(); }
  std::string temporary() const { return absl::StrCat(directory_, "/", meta_.index, ".tmp"); }

  void next_step(const std::shared_ptr<Child>& child, int step) {
    machine_->work_after(machine_->disk_delay(), [this, child, step] {
      if (child->killed) return;
      const int error = do_step(child.get(), step);
      if (error == 0 && step < 3) {
        next_step(child, step + 1);
        return;
      }
      if (child->fd >= 0) fs()->close(std::exchange(child->fd, -1));
      ended_ = absl::OkStatus();
      if (error == 0) return;
      (void)fs()->unlink(temporary());
      ended_ = consensus::file_error(-error, "write", temporary());
    });
  }

  int chunk(Child* child, consensus::ChunkKind kind, std::string_view bytes) {
    std::string out;
    consensus::append_chunk(kind, bytes, &child->chain, &out);
    const int64_t n = fs()->pwrite(child->fd, out.data(), out.size(), child->at);
    child->at += out.size();
    return n < 0 ? static_cast<int>(-n) : 0;
  }

  // 0, or an errno.
  int do_step(Child* child, int step) {
    int error = 0;
    const auto then = [&](SnapshotStep reached) {
      if (error == 0 && hook_) error = hook_(reached);
    };
    switch (step) {
      case 0:
        then(SnapshotStep::kTakeForked);
        child->fd = fs()->open(temporary(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (child->fd < 0) return -child->fd;
        error = chunk(child, consensus::ChunkKind::kHeader, consensus::encode_snapshot_meta(meta_));
        then(SnapshotStep::kTakeCreated);
        return error;
      case 1:
        for (size_t at = 0; at < state_.size() && error == 0; at += consensus::kSnapshotChunk)
          error = chunk(child, consensus::ChunkKind::kData,
                        std::string_view(state_).substr(at, consensus::kSnapshotChunk));
        then(SnapshotStep::kTakeChunk);
        return error;
      case 2: {
        const uint64_t total = state_.size();
        error = chunk(child, consensus::ChunkKind::kTrailer,
                      {reinterpret_cast<const char*>(&total), sizeof total});
        then(SnapshotStep::kTakeWritten);
        if (error == 0) error = -fs()->fsync(child->fd);
        then(SnapshotStep::kTakeSynced);
        return error;
      }
      default:
        error = -fs()->rename(temporary(), consensus::snapshot_path(directory_, meta_.index));
        then(SnapshotStep::kTakeRenamed);
        if (error == 0 && !consensus::sync_directory(fs(), directory_).ok()) error = EIO;
        return error;
    }
  }

  Machine* const machine_;
  const std::string directory_;
  const std::function<int(SnapshotStep)> hook_;
  SnapshotMeta meta_;
  std::string state_;
  std::shared_ptr<Child> child_;
  std::optional<absl::Status> ended_;
};

class SimSurroundings final : public consensus::Surroundings {
 public:
  explicit SimSurroundings(Machine* machine) : machine_(machine) {}

  uint64_t now_ns() const override { return machine_->clock_ns(); }
  uint64_t random() override { return machine_->random().next(); }
  std::unique_ptr<Surroundings::Timer> timer(std::function<void()> fire) override {
    return std::make_unique<sim::Timer>(machine_, std::move(fire));
  }
  std::unique_ptr<Surroundings::Turns> turns(std::function<void()> flush,
                                             std::function<void()> more) override {
    return std::make_unique<sim::Turns>(machine_, std::move(flush), std::move(more));
  }
  std::unique_ptr<Surroundings::Waker> waker(std::function<void()> run) override {
    return std::make_unique<sim::Waker>(machine_, std::move(run));
  }
  void in_background(std::function<void()> work) override {
    machine_->work_after(machine_->disk_delay(), std::move(work));
  }
  std::unique_ptr<consensus::Transport> transport(consensus::Transport::Events* events,
                                                  unsigned user_timeout_ms, uint64_t,
                                                  std::shared_ptr<net::TlsCredentials>) override {
    return std::make_unique<SimTransport>(machine_, events, user_timeout_ms);
  }
  std::unique_ptr<LogWriter> log_writer(std::unique_ptr<consensus::LogStore> store,
                                        size_t max_record_bytes,
                                        std::function<void()> wake) override {
    const auto writing = std::make_shared<Writing>();
    writing->machine = machine_;
    auto writer = std::make_unique<LogWriter>(std::move(store), max_record_bytes, std::move(wake),
                                              [writing] { writing->ask(); });
    writing->writer = writer.get();
    return writer;
  }
  std::unique_ptr<consensus::SnapshotTaker> snapshot_taker(
      std::string directory, std::function<int(SnapshotStep)> hook) override {
    return std::make_unique<Taker>(machine_, std::move(directory), std::move(hook));
  }
  std::unique_ptr<SnapshotInstaller> snapshot_installer(SnapshotInstaller::Environment environment,
                                                        SnapshotInstaller::Source source) override {
    const auto installing = std::make_shared<Installing>();
    installing->machine = machine_;
    environment.ask = [installing] { installing->ask(); };
    auto installer = std::make_unique<SnapshotInstaller>(std::move(environment), source);
    installing->installer = installer.get();
    return installer;
  }

 private:
  Machine* const machine_;
};

}  // namespace

std::unique_ptr<consensus::Surroundings> surroundings_of(Machine* machine) {
  return std::make_unique<SimSurroundings>(machine);
}

}  // namespace xce::sim
