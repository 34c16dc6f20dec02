// A context (xcecli_ctx_t): one client identity, one connection to the primary, many calls in
// flight.
//
// A call encodes its request, takes the connection (repairing it first when it is broken: one
// thread does that for all), sends, waits for its own reply, and asks the pure decision of
// failover.h what to do next. All of it within one deadline. Threads: any, but the fields under
// `mu_` only with it. No callback of the program runs with mu_ held.
#ifndef XCE_LIBXCE_CLIENT_CONTEXT_H_
#define XCE_LIBXCE_CLIENT_CONTEXT_H_

#include <capnp/serialize.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libxce/client/endpoint.h"
#include "libxce/client/failover.h"
#include "libxce/schema/client.capnp.h"
#include "xce/client.h"

namespace xce::client {

inline constexpr char kVersion[] = "0.1.0";

// For whom an apiserver asks; see xcecli_act_for.
struct Person {
  std::string user;
  uint32_t uid = 0, gid = 0;
  bool administrator = false;
};
inline constexpr size_t kMaxPersonName = 255;  // bytes

// How an operation fails over (OpCategory of the spec).
enum class Category {
  kRead,           // reply, full failover
  kWrite,          // reply, full failover, exactly once by its operation sequence
  kFireAndForget,  // no reply: reconnects a dead connection, never backs off
};

// One operation, described: what to send and what to do with the answer.
struct Operation {
  Category category = Category::kRead;
  std::function<void(wire::Op::Builder)> encode;
  // Takes the answer of status 0; its value is the call's result. May throw kj::Exception. Empty:
  // 0.
  std::function<int(wire::Reply::Reader)> accept;
  bool stale_ok = false;
  bool any_node = false;  // a read that each controller answers for itself, primary or not
  uint64_t op_seq = 0;    // of a write; set by run() before it calls encode
  std::optional<xce_op_id_t>
      chosen;            // the caller's own operation id; set by run(), op_seq is 1 then
  uint64_t op_hash = 0;  // of what is asked, with a chosen id
  // Results.
  bool maybe_applied = false;  // an earlier attempt of this write may have been applied
  xce_submitted_t dup = {};    // of E_XCE_DUP_JOB: the job of that key; existing: of the same body
};

class Context {
 public:
  // tls: null for plain connections.
  Context(const xce_client_config_t& config, std::shared_ptr<net::TlsCredentials> tls);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int start();
  void stop();
  // Runs an operation; its result, with last_error() set for this thread.
  int run(Operation* op);
  int set_reconnect_handler(xcecli_reconnect_cb cb, void* arg);
  int set_disconnect_handler(xcecli_disconnect_cb cb, void* arg);
  int set_push_handler(xcecli_push_cb cb, void* arg);
  void set_deadline(int ms);
  int act_for(Person person);
  void set_op_id(const xce_op_id_t* id);  // null: none
  uint64_t generation();
  std::string current_master();
  std::string stats_json();
  const uint64_t* client_id() const { return client_id_; }
  const char* name() const { return config_.name; }
  void put_hello(wire::Hello::Builder hello) const;  // who this client says it is
  // Remembers where else controllers are, as a primary's hello tells: the list that the caller gave
  // may name none that is still there.
  void learn(wire::HelloReply::Reader hello);
  bool forked() const;

 private:
  // The connection that requests go to.
  struct Link {
    uint64_t id = 0;  // 0: none
    Target target;
    uint64_t applied = 0;  // what hello said
  };
  struct Frame;  // a running call
  struct Stats {
    uint64_t calls = 0, retries = 0, reconnects = 0, rotations = 0, redirects = 0, exhaustions = 0,
             ff_dropped = 0, failures = 0, backoff_ms = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  int check_usable();
  int run_with_reply(Operation* op, Frame* frame);
  int take_op_seq(Operation* op, Frame* frame);
  void take_chosen_id(Operation* op, Frame* frame);
  int run_fire_and_forget(Operation* op, Frame* frame);
  int run_anywhere(Operation* op, Frame* frame);
  bool visit(Operation* op, Frame* frame, const std::vector<Target>& targets, int* result);
  bool take_visit(Operation* op, Frame* frame, const Target& target, const Words& words,
                  int* result);
  // Sends on `link` and waits: true with *result when the call is over.
  bool attempt(Operation* op, Frame* frame, const Link& link, int* result);
  bool on_answer(Operation* op, Frame* frame, const Link& link, const Words& words, int* result);
  bool on_no_answer(Operation* op, Frame* frame, const Link& link, int error, bool written,
                    int* result);
  // Applies the outcome of a request on `link`; a link that others have left already changes
  // nothing shared.
  Decision settle(Frame* frame, const Link& link, const Outcome& outcome);

  int acquire(const FailoverConfig& config, Frame* frame, Link* link);
  int repair(Lock* lock, const FailoverConfig& config, Frame* frame);
  int after_hello(Lock* lock, const FailoverConfig& config, Frame* frame, const Handshake& h,
                  const Target& target);
  int run_hook(Lock* lock);
  void set_learned(const std::vector<Address>& members);
  bool note_certificate(const Target& target, bool rejected);
  Decision decide_shared(const FailoverConfig& config, CallState* call, const Outcome& outcome);
  void on_closed(uint64_t id, int error, int probed);
  void on_push(const Words& words);

  std::string encode(const Operation& op, const Frame& frame, uint64_t seq);
  std::string own_frame(uint64_t seq) const;
  int finish(const Operation& op, Frame* frame, int result);
  int finish_locked(const Operation& op, Frame* frame, int result);

  Address address_of(const Target& target) const;
  Target target_of(const std::string& host, uint16_t port) const;
  void note_attempt(const Target& target, const std::string& what);
  void queue_log(xce_log_level_t level, std::string line);
  void flush_logs();

  // Never change after construction.
  const xce_client_config_t config_;
  const uint64_t uid_;  // of this object in this process: addresses are reused, this is not
  const pid_t pid_;
  const std::shared_ptr<net::TlsCredentials> tls_;
  std::vector<Address> candidates_;
  FailoverConfig failover_config_;
  uint64_t client_id_[2];
  std::string user_;

  std::mutex mu_;
  std::condition_variable changed_;  // repaired, stopped, or a write was answered
  bool started_ = false, stopped_ = false, repairing_ = false;
  bool takes_pushes_ = false;  // a push handler was set
  Link link_;
  FailoverState failover_;
  uint32_t rejected_ = 0;      // candidates with which certificates were not accepted, a bit each
  uint64_t passes_ = 0;        // passes without a primary, ever
  std::set<uint64_t> closed_;  // connections that ended since the repair began
  std::vector<Address> learned_;  // controllers that are no candidates
  size_t learned_turn_ = 0;
  uint64_t generation_ = 0;
  bool born_ = false;
  uint64_t birth_ = 0;
  uint64_t next_seq_ = 1, next_op_seq_ = 1;
  std::set<uint64_t> open_ops_;                        // writes not answered yet
  std::deque<std::pair<int64_t, std::string>> trail_;  // newest failed attempts: when, what
  uint64_t attempts_ = 0;                              // failed attempts ever
  std::vector<std::pair<xce_log_level_t, std::string>> logs_;
  std::mt19937_64 random_;
  Stats stats_;
  xcecli_reconnect_cb reconnect_cb_ = nullptr;
  void* reconnect_arg_ = nullptr;

  std::mutex push_mu_;  // guards the four below
  xcecli_disconnect_cb disconnect_cb_ = nullptr;
  void* disconnect_arg_ = nullptr;
  xcecli_push_cb push_cb_ = nullptr;
  void* push_arg_ = nullptr;

  std::unique_ptr<Endpoint> endpoint_;
};

// This thread's newest error, which xcecli_last_error copies.
xce_error_t* last_error();

}  // namespace xce::client

struct xcecli_ctx final : public xce::client::Context {
  using Context::Context;
};

#endif  // XCE_LIBXCE_CLIENT_CONTEXT_H_
