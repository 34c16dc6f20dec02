// Surroundings in which nothing happens by itself: a test says when the loop turns, when the disk
// is done, how time passes and what the peers say. For rules about turns, without timing.
#ifndef XCE_CONTROLLER_CONSENSUS_HAND_DRIVEN_H_
#define XCE_CONTROLLER_CONSENSUS_HAND_DRIVEN_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/consensus/surroundings.h"
#include "libxce/net/frame.h"

namespace xce::consensus {

// What a test holds; it must outlive the Consensus that runs in it.
struct Hand {
  uint64_t clock_ns = 1000000000;
  std::function<void()> flush, more;
  bool busy = false;
  Transport::Events* events = nullptr;
  std::vector<std::pair<uint64_t, PeerMessage>> sent;  // to whom, what
  LogWriter* writer = nullptr;
  std::function<void()> woken;
  bool wake_due = false;

  // One turn of the loop, in which nothing has come in.
  void turn() {
    flush();
    if (busy) more();
    flush();
  }
  // The disk finishes everything that was queued, and the loop is told.
  void finish_writes() {
    while (writer->write_some()) {
    }
    if (std::exchange(wake_due, false)) woken();
  }
  void deliver(uint64_t from, const std::string& frame) {
    PeerMessage message = decoded(frame);
    events->on_message(from, message);
  }
  void deliver(uint64_t from, const xce_core_message& message) {
    std::string frame;
    append_raft_frame(message, &frame);
    deliver(from, frame);
  }
  // The newest message of this type to that node, or nullptr.
  const xce_core_message* last_sent(uint64_t to, int type) const {
    for (auto it = sent.rbegin(); it != sent.rend(); ++it)
      if (it->first == to && it->second.kind == PeerMessage::kRaft && it->second.raft.type == type)
        return &it->second.raft;
    return nullptr;
  }

  static PeerMessage decoded(const std::string& frame) {
    net::FrameDecoder decoder(net::kMaxFrame);
    decoder.feed(frame);
    auto payload = decoder.next();
    EXPECT_TRUE(payload.ok() && payload->has_value());
    PeerMessage out;
    EXPECT_TRUE(decode_peer_message(**payload, &out).ok());
    return out;
  }
};

class HandDriven final : public Surroundings {
 public:
  explicit HandDriven(Hand* hand) : hand_(hand) {}

  uint64_t now_ns() const override { return hand_->clock_ns; }
  uint64_t random() override { return ++random_; }
  std::unique_ptr<Timer> timer(std::function<void()>) override {
    struct Never final : Timer {
      void start(uint64_t) override {}
      void stop() override {}
    };
    return std::make_unique<Never>();
  }
  std::unique_ptr<Turns> turns(std::function<void()> flush, std::function<void()> more) override {
    struct ByHand final : Turns {
      explicit ByHand(Hand* hand) : hand(hand) {}
      void set_busy(bool busy) override { hand->busy = busy; }
      Hand* const hand;
    };
    hand_->flush = std::move(flush);
    hand_->more = std::move(more);
    return std::make_unique<ByHand>(hand_);
  }
  std::unique_ptr<Waker> waker(std::function<void()> run) override {
    struct Later final : Waker {
      explicit Later(Hand* hand) : hand(hand) {}
      void wake() override { hand->wake_due = true; }
      Hand* const hand;
    };
    hand_->woken = std::move(run);
    return std::make_unique<Later>(hand_);
  }
  void in_background(std::function<void()> work) override { work(); }
  std::unique_ptr<Transport> transport(Transport::Events* events, unsigned, uint64_t,
                                       std::shared_ptr<net::TlsCredentials>) override {
    struct Recording final : Transport {
      explicit Recording(Hand* hand) : hand(hand) {}
      void add_peer(uint64_t, const std::string&, uint16_t) override {}
      void remove_peer(uint64_t) override {}
      void adopt(int, std::string_view, std::shared_ptr<net::TlsSession>) override {}
      void send(uint64_t peer, std::string frames) override {
        hand->sent.emplace_back(peer, Hand::decoded(frames));
      }
      bool can_send(uint64_t) const override { return true; }
      void hang_up() override {}
      void close() override {}
      Hand* const hand;
    };
    hand_->events = events;
    return std::make_unique<Recording>(hand_);
  }
  std::unique_ptr<LogWriter> log_writer(std::unique_ptr<LogStore> store, size_t max_record_bytes,
                                        std::function<void()> wake) override {
    auto writer =
        std::make_unique<LogWriter>(std::move(store), max_record_bytes, std::move(wake), [] {});
    hand_->writer = writer.get();
    return writer;
  }
  std::unique_ptr<SnapshotTaker> snapshot_taker(std::string directory,
                                                std::function<int(SnapshotStep)> hook) override {
    return std::make_unique<ForkingSnapshotTaker>(std::move(directory), std::move(hook));
  }
  std::unique_ptr<SnapshotInstaller> snapshot_installer(SnapshotInstaller::Environment environment,
                                                        SnapshotInstaller::Source source) override {
    return std::make_unique<SnapshotInstaller>(std::move(environment), source);
  }

 private:
  Hand* const hand_;
  uint64_t random_ = 0;
};

}  // namespace xce::consensus

#endif  // XCE_CONTROLLER_CONSENSUS_HAND_DRIVEN_H_
