#include "controller/service/state_codec.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "controller/state/snapshot.h"
#include "libxce/schema/snapshot.capnp.h"
#include "libxce/wire/codec.h"

namespace xce::service {
namespace {

constexpr uint16_t kKeyHashes = 3;  // from this version on, keys are hashes
constexpr uint16_t kVersion = kKeyHashes;
constexpr size_t kBatchItems = 512;
constexpr size_t kBatchBytes = size_t{128} << 10;  // of bodies, about
constexpr size_t kScratchWords = size_t{64} << 10;
constexpr uint64_t kMaxRecordWords = uint64_t{8} << 20;

capnp::Data::Reader data_of(const std::string& from) {
  return {reinterpret_cast<const kj::byte*>(from.data()), from.size()};
}
std::string string_of(capnp::Data::Reader from) {
  return std::string(reinterpret_cast<const char*>(from.begin()), from.size());
}
std::string string_of(capnp::Text::Reader from) { return wire::text(from); }

size_t size_of(const JobBody& body) {
  size_t n = body.script.size();
  for (const std::string& arg : body.args) n += arg.size() + 16;
  for (const std::string& env : body.env) n += env.size() + 16;
  return n;
}

// A key in a snapshot: the user, a zero byte, the hash.
std::string name_of(const std::string& user, const state::KeyHash& key) {
  std::string name = user;
  name.push_back('\0');
  name.append(reinterpret_cast<const char*>(&key.a), sizeof key.a);
  name.append(reinterpret_cast<const char*>(&key.b), sizeof key.b);
  return name;
}

void write_texts(const std::vector<std::string>& from, capnp::List<capnp::Text>::Builder to) {
  for (size_t i = 0; i < from.size(); ++i) to.set(static_cast<unsigned>(i), from[i]);
}

class Encoder final : public state::StateSink {
 public:
  explicit Encoder(const ByteSink& sink)
      : sink_(sink), scratch_(kj::heapArray<capnp::word>(kScratchWords)) {
    std::memset(scratch_.begin(), 0, kScratchWords * sizeof(capnp::word));
  }

  void totals(const state::SavedTotals& from) override {
    emit([&](wire::StateRecord::Builder record) {
      auto to = record.initTotals();
      to.setVersion(kVersion);
      to.setApplied(from.applied);
      to.setNowMs(from.now_ms);
      to.setNextJob(from.next_job);
      to.setFinished(from.finished);
      to.setSessionFloor(from.session_floor);
      to.setSchedulerEpoch(from.scheduler.epoch);
      to.setSchedulerClientHi(from.scheduler.client.hi);
      to.setSchedulerClientLo(from.scheduler.client.lo);
      to.setSchedulerName(from.scheduler.name);
    });
  }
  void queue(const Queue& from) override {
    emit([&](wire::StateRecord::Builder record) {
      wire::write_queue(from, record.initQueues(1)[0]);
    });
  }
  void reservation(const Reservation& from) override {
    emit([&](wire::StateRecord::Builder record) {
      wire::write_reservation(from, record.initReservations(1)[0]);
    });
  }
  void user(const User& from) override {
    emit([&](wire::StateRecord::Builder record) {
      auto to = record.initUsers(1)[0];
      to.setName(from.name);
      to.setFinished(from.finished);
      to.setCpuMs(from.cpu_ms);
    });
  }
  void host(const Host& from, bool shrunk, JobId holder) override {
    emit([&](wire::StateRecord::Builder record) {
      auto to = record.initHosts(1)[0];
      wire::write_host(from, to.initHost());
      to.setShrunk(shrunk);
      to.setHolder(holder);
    });
  }
  void outbox(const std::string& host, uint64_t seq) override {
    emit([&](wire::StateRecord::Builder record) {
      auto to = record.initOutboxes(1)[0];
      to.setHost(host);
      to.setSeq(seq);
    });
  }
  void job(const Job& from, bool requeue_wanted) override {
    jobs_.push_back({&from, requeue_wanted});
    jobs_bytes_ += size_of(*from.spec.body);
    ++n_jobs_;
    if (jobs_.size() >= kBatchItems || jobs_bytes_ >= kBatchBytes) flush_jobs();
  }
  void session(const state::SavedSession& from) override {
    flush_jobs();
    sessions_.push_back(from);
    n_results_ += from.results->size();
    if (sessions_.size() >= kBatchItems || n_results_ >= kBatchItems) flush_sessions();
  }
  void key(const state::SavedKey& from) override {
    flush_sessions();
    keys_.push_back(from);
    if (keys_.size() >= kBatchItems) flush_keys();
  }
  void orphan(const state::SubmitKeys::Orphan& from) override {
    flush_keys();
    orphans_.push_back(&from);
    if (orphans_.size() >= kBatchItems) flush_orphans();
  }
  bool finish() {
    flush_jobs();
    flush_sessions();
    flush_keys();
    flush_orphans();
    emit([&](wire::StateRecord::Builder record) { record.setEnd(n_jobs_); });
    return good_;
  }

 private:
  struct PendingJob {
    const Job* job;
    bool requeue_wanted;
  };

  template <typename Fill>
  void emit(Fill fill) {
    if (!good_) return;
    capnp::MallocMessageBuilder message(scratch_);
    fill(message.initRoot<wire::StateRecord>());
    const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
    const uint64_t n = words.size();
    good_ =
        sink_({reinterpret_cast<const char*>(&n), sizeof n}) &&
        sink_({reinterpret_cast<const char*>(words.begin()), words.size() * sizeof(capnp::word)});
  }

  // Bodies and environments that several jobs share become records before the first that needs
  // them.
  void flush_shared() {
    std::vector<std::pair<uint64_t, const SharedTexts*>> envs;
    std::vector<std::pair<uint64_t, const JobBody*>> bodies;
    for (const PendingJob& each : jobs_) {
      const std::shared_ptr<const JobBody>& body = each.job->spec.body;
      if (body->env.shared() && env_ids_.emplace(body->env.identity(), last_env_ + 1).second)
        envs.emplace_back(++last_env_, &body->env);
      if (body.use_count() > 1 && bodies_.emplace(body.get(), last_body_ + 1).second)
        bodies.emplace_back(++last_body_, body.get());
    }
    if (!envs.empty())
      emit([&](wire::StateRecord::Builder record) {
        auto list = record.initEnvs(static_cast<unsigned>(envs.size()));
        for (unsigned i = 0; i < envs.size(); ++i) {
          list[i].setId(envs[i].first);
          const SharedTexts& env = *envs[i].second;
          write_texts(env, list[i].initEnv(static_cast<unsigned>(env.size())));
        }
      });
    if (!bodies.empty())
      emit([&](wire::StateRecord::Builder record) {
        auto list = record.initBodies(static_cast<unsigned>(bodies.size()));
        for (unsigned i = 0; i < bodies.size(); ++i) {
          list[i].setId(bodies[i].first);
          write_body_parts(*bodies[i].second, list[i], list[i]);
        }
      });
  }
  // Script, arguments, and the environment or where it is.
  template <typename Owner, typename To>
  void write_body_parts(const JobBody& body, Owner owner, To to) {
    to.setScript(data_of(body.script));
    write_texts(body.args, to.initArgs(static_cast<unsigned>(body.args.size())));
    const auto shared = env_ids_.find(body.env.identity());
    if (shared != env_ids_.end())
      owner.setEnvId(shared->second);
    else
      write_texts(body.env, to.initEnv(static_cast<unsigned>(body.env.size())));
  }
  void flush_jobs() {
    if (jobs_.empty()) return;
    flush_shared();
    emit([&](wire::StateRecord::Builder record) {
      auto list = record.initJobs(static_cast<unsigned>(jobs_.size()));
      for (unsigned i = 0; i < jobs_.size(); ++i) {
        const Job& job = *jobs_[i].job;
        auto to = list[i].initJob();
        wire::write_job(job, wire::Detail::kSummary, to);
        list[i].setRequeueWanted(jobs_[i].requeue_wanted);
        auto spec = to.getSpec();
        if (!job.spec.array.empty()) {
          auto array = spec.initArray(static_cast<unsigned>(job.spec.array.size()));
          for (unsigned k = 0; k < job.spec.array.size(); ++k) array.set(k, job.spec.array[k]);
        }
        const auto shared = bodies_.find(job.spec.body.get());
        if (shared != bodies_.end())
          list[i].setBodyId(shared->second);
        else
          write_body_parts(*job.spec.body, list[i], spec);
      }
    });
    jobs_.clear();
    jobs_bytes_ = 0;
  }
  void flush_sessions() {
    if (sessions_.empty()) return;
    emit([&](wire::StateRecord::Builder record) {
      auto list = record.initSessions(static_cast<unsigned>(sessions_.size()));
      for (unsigned i = 0; i < sessions_.size(); ++i) write_session(sessions_[i], list[i]);
    });
    sessions_.clear();
    n_results_ = 0;
  }
  static void write_session(const state::SavedSession& from, wire::SavedSession::Builder to) {
    to.setClientHi(from.client.hi);
    to.setClientLo(from.client.lo);
    to.setBirth(from.birth);
    to.setUsedMs(from.used_ms);
    to.setLowest(from.lowest);
    auto results = to.initResults(static_cast<unsigned>(from.results->size()));
    unsigned i = 0;
    for (const auto& [seq, result] : *from.results) {
      auto out = results[i++];
      out.setOpSeq(seq);
      out.setStatus(result.status);
      out.setMessage(result.message);
      out.setJob(result.job);
      out.setCount(result.count);
      out.setExisting(result.existing);
      out.setRevision(result.revision);
      out.setEpoch(result.epoch);
      out.setActive(result.active);
      out.setOutboxApplied(result.outbox_applied);
      out.setOpHash(result.op_hash);
      if (result.item_status.empty()) continue;
      auto items = out.initItemStatus(static_cast<unsigned>(result.item_status.size()));
      for (unsigned k = 0; k < result.item_status.size(); ++k) items.set(k, result.item_status[k]);
    }
  }
  void flush_keys() {
    if (keys_.empty()) return;
    emit([&](wire::StateRecord::Builder record) {
      auto list = record.initKeys(static_cast<unsigned>(keys_.size()));
      for (unsigned i = 0; i < keys_.size(); ++i) {
        list[i].setName(data_of(name_of(keys_[i].user, keys_[i].key)));
        list[i].setJob(keys_[i].job);
        list[i].setCount(keys_[i].count);
        list[i].setKept(keys_[i].kept);
        list[i].setBodyHash(keys_[i].body_hash);
      }
    });
    keys_.clear();
  }
  void flush_orphans() {
    if (orphans_.empty()) return;
    emit([&](wire::StateRecord::Builder record) {
      auto list = record.initOrphans(static_cast<unsigned>(orphans_.size()));
      for (unsigned i = 0; i < orphans_.size(); ++i) {
        list[i].setRemovedMs(orphans_[i]->removed_ms);
        list[i].setName(data_of(name_of(orphans_[i]->user, orphans_[i]->key)));
      }
    });
    orphans_.clear();
  }

  const ByteSink& sink_;
  kj::Array<capnp::word> scratch_;
  bool good_ = true;
  uint64_t n_jobs_ = 0;
  std::vector<PendingJob> jobs_;
  size_t jobs_bytes_ = 0;
  std::map<const JobBody*, uint64_t> bodies_;
  uint64_t last_body_ = 0;
  std::map<const void*, uint64_t> env_ids_;
  uint64_t last_env_ = 0;
  std::vector<state::SavedSession> sessions_;
  size_t n_results_ = 0;
  std::vector<state::SavedKey> keys_;
  std::vector<const state::SubmitKeys::Orphan*> orphans_;
};

class Decoder {
 public:
  // False: that was the end.
  bool take(wire::StateRecord::Reader from) {
    switch (from.which()) {
      case wire::StateRecord::TOTALS: totals(from.getTotals()); break;
      case wire::StateRecord::QUEUES:
        for (auto queue : from.getQueues()) to_.queue(wire::read_queue(queue));
        break;
      case wire::StateRecord::RESERVATIONS:
        for (auto reservation : from.getReservations())
          to_.reservation(wire::read_reservation(reservation));
        break;
      case wire::StateRecord::USERS:
        for (auto user : from.getUsers())
          to_.user({string_of(user.getName()), 0, 0, user.getFinished(), user.getCpuMs()});
        break;
      case wire::StateRecord::HOSTS:
        for (auto host : from.getHosts())
          to_.host(wire::read_host(host.getHost()), host.getShrunk(), host.getHolder());
        break;
      case wire::StateRecord::OUTBOXES:
        for (auto outbox : from.getOutboxes())
          to_.outbox(string_of(outbox.getHost()), outbox.getSeq());
        break;
      case wire::StateRecord::BODIES:
        for (auto body : from.getBodies()) take_body(body);
        break;
      case wire::StateRecord::ENVS:
        for (auto env : from.getEnvs()) envs_[env.getId()] = texts_of(env.getEnv());
        break;
      case wire::StateRecord::JOBS:
        for (auto job : from.getJobs()) take_job(job);
        break;
      case wire::StateRecord::SESSIONS:
        for (auto session : from.getSessions()) take_session(session);
        break;
      case wire::StateRecord::KEYS:
        for (auto key : from.getKeys()) take_key(key);
        break;
      case wire::StateRecord::ORPHANS:
        for (auto orphan : from.getOrphans()) take_orphan(orphan);
        break;
      case wire::StateRecord::END:
        if (from.getEnd() != n_jobs_) throw wire::CodecError("the number of jobs is wrong");
        return false;
      default: throw wire::CodecError("a record of an unknown kind");
    }
    return true;
  }
  bool newer() const { return version_ > kVersion; }
  uint16_t version() const { return version_; }
  absl::StatusOr<std::unique_ptr<state::State>> finish() { return to_.finish(); }

 private:
  void totals(wire::SavedTotals::Reader from) {
    version_ = from.getVersion();
    state::SavedTotals totals;
    totals.applied = from.getApplied();
    totals.now_ms = from.getNowMs();
    totals.next_job = from.getNextJob();
    totals.finished = from.getFinished();
    totals.session_floor = from.getSessionFloor();
    totals.scheduler.epoch = from.getSchedulerEpoch();
    totals.scheduler.client = {from.getSchedulerClientHi(), from.getSchedulerClientLo()};
    totals.scheduler.name = string_of(from.getSchedulerName());
    to_.totals(totals);
  }
  static std::vector<std::string> texts_of(capnp::List<capnp::Text>::Reader from) {
    std::vector<std::string> texts;
    texts.reserve(from.size());
    for (auto text : from) texts.push_back(string_of(text));
    return texts;
  }
  const SharedTexts& env_of(uint64_t id) const {
    const auto env = envs_.find(id);
    if (env == envs_.end()) throw wire::CodecError(absl::StrCat("environment ", id, " is missing"));
    return env->second;
  }
  void take_body(wire::SavedBody::Reader from) {
    auto body = std::make_shared<JobBody>();
    body->script = string_of(from.getScript());
    body->args = texts_of(from.getArgs());
    body->env =
        from.getEnvId() != 0 ? env_of(from.getEnvId()) : SharedTexts(texts_of(from.getEnv()));
    bodies_[from.getId()] = std::move(body);
  }
  // Up to version 2 a name ended with the key itself.
  std::pair<std::string, state::KeyHash> key_of(capnp::Data::Reader from) const {
    const std::string name = string_of(from);
    const size_t zero = name.find('\0');
    if (zero == std::string::npos) throw wire::CodecError("a submit key without a user");
    const std::string rest = name.substr(zero + 1);
    if (version_ < kKeyHashes) return {name.substr(0, zero), state::hash_of_key(rest)};
    state::KeyHash hash;
    if (rest.size() != sizeof hash.a + sizeof hash.b)
      throw wire::CodecError("a submit key of a wrong size");
    std::memcpy(&hash.a, rest.data(), sizeof hash.a);
    std::memcpy(&hash.b, rest.data() + sizeof hash.a, sizeof hash.b);
    return {name.substr(0, zero), hash};
  }
  void take_key(wire::SavedKey::Reader from) {
    auto [user, key] = key_of(from.getName());
    to_.key(
        {std::move(user), key, from.getJob(), from.getCount(), from.getKept(), from.getBodyHash()});
  }
  void take_orphan(wire::SavedOrphan::Reader from) {
    auto [user, key] = key_of(from.getName());
    to_.orphan({from.getRemovedMs(), std::move(user), key});
  }
  void take_job(wire::SavedJob::Reader from) {
    Job job = wire::read_job(from.getJob());
    if (from.getBodyId() != 0) {
      const auto body = bodies_.find(from.getBodyId());
      if (body == bodies_.end())
        throw wire::CodecError(absl::StrCat("the body of job ", job.id, " is missing"));
      job.spec.body = body->second;
    } else if (from.getEnvId() != 0) {  // its body was made for it a moment ago
      std::const_pointer_cast<JobBody>(job.spec.body)->env = env_of(from.getEnvId());
    }
    ++n_jobs_;
    to_.take_job(std::move(job), from.getRequeueWanted());
  }
  void take_session(wire::SavedSession::Reader from) {
    std::map<uint64_t, Result> results;
    for (auto in : from.getResults()) {
      Result& result = results[in.getOpSeq()];
      result.status = in.getStatus();
      result.message = string_of(in.getMessage());
      result.job = in.getJob();
      result.count = in.getCount();
      result.existing = in.getExisting();
      result.revision = in.getRevision();
      result.epoch = in.getEpoch();
      result.active = in.getActive();
      result.outbox_applied = in.getOutboxApplied();
      result.op_hash = in.getOpHash();
      for (auto status : in.getItemStatus()) result.item_status.push_back(status);
    }
    to_.session({{from.getClientHi(), from.getClientLo()},
                 from.getBirth(),
                 from.getUsedMs(),
                 from.getLowest(),
                 &results});
  }

  state::StateBuilder to_;
  uint16_t version_ = 0;
  uint64_t n_jobs_ = 0;
  std::map<uint64_t, std::shared_ptr<const JobBody>> bodies_;
  std::map<uint64_t, SharedTexts> envs_;
};

bool read_fully(const ByteSource& source, char* to, size_t n) {
  while (n > 0) {
    const size_t got = source(to, n);
    if (got == 0) return false;
    to += got;
    n -= got;
  }
  return true;
}

}  // namespace

bool save_state(const state::State& state, const ByteSink& sink) {
  Encoder encoder(sink);
  state.save(encoder);
  return encoder.finish();
}

absl::StatusOr<std::unique_ptr<state::State>> load_state(const ByteSource& source,
                                                         uint16_t* version) {
  Decoder decoder;
  std::vector<uint64_t> words;
  std::string problem;
  for (bool more = true; more && problem.empty();) {
    uint64_t n = 0;
    if (!read_fully(source, reinterpret_cast<char*>(&n), sizeof n))
      return absl::DataLossError("the state is cut short");
    if (n == 0 || n > kMaxRecordWords)
      return absl::DataLossError(absl::StrCat("a record of ", n, " words"));
    words.resize(n);
    if (!read_fully(source, reinterpret_cast<char*>(words.data()), n * sizeof(uint64_t)))
      return absl::DataLossError("the state is cut short");
    const auto thrown = kj::runCatchingExceptions([&] {
      try {
        capnp::FlatArrayMessageReader reader(
            kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
            wire::reader_options(n * sizeof(uint64_t)));
        more = decoder.take(reader.getRoot<wire::StateRecord>());
      } catch (const wire::CodecError& error) {
        problem = error.what();
      }
    });
    KJ_IF_MAYBE (exception, thrown) {
      problem = exception->getDescription().cStr();
    }
    if (decoder.newer())
      return absl::FailedPreconditionError(
          "it was written by a newer version of XCE. Start the newer version");
  }
  if (!problem.empty()) return absl::DataLossError(problem);
  if (version != nullptr) *version = decoder.version();
  return decoder.finish();
}

}  // namespace xce::service
