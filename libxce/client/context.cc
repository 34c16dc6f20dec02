// Life, settings and callbacks of a context. The calls are in context_calls.cc, the repair in
// context_repair.cc.
#include "libxce/client/context.h"

#include <pwd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "libxce/client/client_log.h"
#include "libxce/client/context_frame.h"
#include "libxce/client/convert.h"
#include "libxce/wire/codec.h"

namespace xce::client {
namespace {

std::atomic<uint64_t> next_uid{1};

std::string effective_user() {
  passwd entry, *found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr)
    return found->pw_name;
  return absl::StrCat(geteuid());
}

FailoverConfig failover_config(const xce_client_config_t& config) {
  xce_retry_config_t retry = config.retry;
  const bool none = retry.max_retries == 0 && retry.initial_delay_ms == 0 &&
                    retry.max_delay_ms == 0 && retry.multiplier == 0;
  if (none) retry = XCE_RETRY_DEFAULTS;
  FailoverConfig out;
  out.candidates = config.nmasters;
  out.max_retries = retry.max_retries;
  out.initial_delay_ms = retry.initial_delay_ms;
  out.max_delay_ms = retry.max_delay_ms;
  out.multiplier = retry.multiplier < 1 ? 1 : retry.multiplier;
  return out;
}

// Deadlines that threads have set for themselves, by context.
std::map<uint64_t, int>& thread_deadlines() {
  thread_local std::map<uint64_t, int> deadlines;
  return deadlines;
}

// For whom threads act, by context.
std::map<uint64_t, Person>& thread_persons() {
  thread_local std::map<uint64_t, Person> persons;
  return persons;
}

// Operation ids that threads have set for their next write, by context.
std::map<uint64_t, xce_op_id_t>& thread_op_ids() {
  thread_local std::map<uint64_t, xce_op_id_t> ids;
  return ids;
}

}  // namespace

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

Clock::time_point time_point_of(int64_t ms) {
  return Clock::time_point(std::chrono::milliseconds(ms));
}

int thread_deadline(uint64_t uid, int otherwise) {
  const auto& all = thread_deadlines();
  const auto found = all.find(uid);
  return found == all.end() ? otherwise : found->second;
}

const Person* thread_person(uint64_t uid) {
  const auto& all = thread_persons();
  const auto found = all.find(uid);
  return found == all.end() ? nullptr : &found->second;
}

std::optional<xce_op_id_t> take_thread_op_id(uint64_t uid) {
  auto& all = thread_op_ids();
  const auto found = all.find(uid);
  if (found == all.end()) return std::nullopt;
  const xce_op_id_t id = found->second;
  all.erase(found);
  return id;
}

xce_error_t* last_error() {
  thread_local xce_error_t error = {};
  return &error;
}

Context::Context(const xce_client_config_t& config, std::shared_ptr<net::TlsCredentials> tls)
    : config_(config), uid_(next_uid++), pid_(getpid()), tls_(std::move(tls)) {
  for (int i = 0; i < config_.nmasters; ++i)
    candidates_.push_back({config_.masters[i], config_.master_ports[i]});
  failover_config_ = failover_config(config_);
  user_ = config_.user;
  if (user_.empty() && tls_ != nullptr && tls_->own().role == Role::kUser)
    user_ = tls_->own().name;  // whom the controllers will take us for
  if (user_.empty()) user_ = effective_user();
  std::random_device device;
  random_.seed((uint64_t{device()} << 32) ^ device());
  client_id_[0] = config_.client_id[0];
  client_id_[1] = config_.client_id[1];
  if (client_id_[0] == 0 && client_id_[1] == 0) {
    for (uint64_t& half : client_id_) half = (uint64_t{device()} << 32) | device();
  } else {
    // The id may have written before, in a process that is gone: start beyond anything that it can
    // have used.
    next_op_seq_ = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count());
  }
}

Context::~Context() {
  if (endpoint_ != nullptr && forked()) {
    (void)endpoint_
        .release();  // its thread lives in the parent only; nothing here can be joined or closed
    return;
  }
  stop();
  endpoint_.reset();
}

bool Context::forked() const { return getpid() != pid_; }

int Context::start() {
  if (forked()) return -E_XCE_FORKED;
  {
    Lock lock(mu_);
    if (stopped_) return -ECANCELED;
    if (started_) return 0;
    endpoint_ = std::make_unique<Endpoint>(
        candidates_, tls_,
        Endpoint::Callbacks{
            [this](const Words& words) { on_push(words); },
            [this](uint64_t id, int error, int probed) { on_closed(id, error, probed); }});
    if (const int rc = endpoint_->start(own_frame(kHelloSeq), own_frame(kPingSeq)); rc != 0)
      return rc;
    started_ = true;
    if (takes_pushes_) endpoint_->watch_idle();
  }
  Operation none;
  Frame frame(&none, now_ms(), thread_deadline(uid_, config_.call_deadline_ms));
  {
    Lock lock(mu_);
    frame.begin(passes_, attempts_);
  }
  Link link;
  return finish(none, &frame, acquire(failover_config_, &frame, &link));
}

void Context::stop() {
  if (forked()) return;
  Lock lock(mu_);
  stopped_ = true;
  changed_.notify_all();
  if (endpoint_ != nullptr) endpoint_->shutdown();
}

int Context::set_reconnect_handler(xcecli_reconnect_cb cb, void* arg) {
  Lock lock(mu_);
  reconnect_cb_ = cb;
  reconnect_arg_ = arg;
  return 0;
}

int Context::set_disconnect_handler(xcecli_disconnect_cb cb, void* arg) {
  std::lock_guard<std::mutex> lock(push_mu_);
  disconnect_cb_ = cb;
  disconnect_arg_ = arg;
  return 0;
}

int Context::set_push_handler(xcecli_push_cb cb, void* arg) {
  if (cb != nullptr) {
    Lock lock(mu_);
    takes_pushes_ = true;
    if (endpoint_ != nullptr) endpoint_->watch_idle();
  }
  std::lock_guard<std::mutex> lock(push_mu_);
  push_cb_ = cb;
  push_arg_ = arg;
  return 0;
}

void Context::set_deadline(int ms) {
  if (ms <= 0)
    thread_deadlines().erase(uid_);
  else
    thread_deadlines()[uid_] = ms;
}

int Context::act_for(Person person) {
  if (person.user.empty()) {
    thread_persons().erase(uid_);
    return 0;
  }
  if (config_.role != HostRole_apiserver) return -EPERM;
  if (person.user.size() > kMaxPersonName) return -ENAMETOOLONG;
  thread_persons()[uid_] = std::move(person);
  return 0;
}

void Context::set_op_id(const xce_op_id_t* id) {
  if (id == nullptr)
    thread_op_ids().erase(uid_);
  else
    thread_op_ids()[uid_] = *id;
}

uint64_t Context::generation() {
  Lock lock(mu_);
  return generation_;
}

std::string Context::current_master() {
  Lock lock(mu_);
  return link_.id == 0 ? "" : to_string(address_of(link_.target));
}

std::string Context::stats_json() {
  Lock lock(mu_);
  return absl::StrCat("{\"calls\":", stats_.calls, ",\"failures\":", stats_.failures,
                      ",\"retries\":", stats_.retries, ",\"reconnects\":", stats_.reconnects,
                      ",\"rotations\":", stats_.rotations, ",\"redirects\":", stats_.redirects,
                      ",\"backoff_ms\":", stats_.backoff_ms,
                      ",\"exhaustions\":", stats_.exhaustions,
                      ",\"ff_dropped\":", stats_.ff_dropped, ",\"generation\":", generation_,
                      ",\"writes_in_flight\":", open_ops_.size(),
                      ",\"connected\":", link_.id != 0 ? "true" : "false", "}");
}

void Context::on_push(const Words& words) {
  xcecli_push_cb cb;
  void* arg;
  {
    std::lock_guard<std::mutex> lock(push_mu_);
    cb = push_cb_;
    arg = push_arg_;
  }
  if (cb == nullptr) return;
  try {
    capnp::FlatArrayMessageReader message(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        wire::reader_options(words.size() * 8));
    const auto push = message.getRoot<wire::ServerMessage>().getPush();
    for (const auto event : push.getEvents()) {
      Arena arena;
      const xce_event_t out = event_of(event, push.getRevision(), &arena);
      cb(static_cast<xcecli_ctx*>(this), &out, arg);
    }
  } catch (const kj::Exception& e) {
    log_line(XCE_LOG_WARN, absl::StrCat("dropped a malformed push: ", e.getDescription().cStr()));
  }
}

Address Context::address_of(const Target& target) const {
  if (target.candidate >= 0) return candidates_[target.candidate];
  return {target.host, target.port};
}

Target Context::target_of(const std::string& host, uint16_t port) const {
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i] == Address{host, port}) return Target{static_cast<int>(i), "", 0};
  return Target{-1, host, port};
}

void Context::note_attempt(const Target& target, const std::string& what) {
  ++attempts_;
  trail_.emplace_back(now_ms(), absl::StrCat(to_string(address_of(target)), " ", what));
  if (trail_.size() > 32) trail_.pop_front();
}

void Context::queue_log(xce_log_level_t level, std::string line) {
  logs_.emplace_back(level, std::move(line));
}

void Context::flush_logs() {
  std::vector<std::pair<xce_log_level_t, std::string>> logs;
  {
    Lock lock(mu_);
    logs.swap(logs_);
  }
  for (const auto& [level, line] : logs) log_line(level, line);
}

}  // namespace xce::client
