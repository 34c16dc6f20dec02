#include "controller/history/record.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libxce/wire/codec.h"

namespace xce::history {
namespace {

bool differs(const std::string& wanted, capnp::Text::Reader has) {
  return !wanted.empty() && std::string_view(has.begin(), has.size()) != wanted;
}

// Whether it is worth reading the whole job: the criteria that most rows fail.
bool may_match(wire::Job::Reader job, const JobFilter& filter) {
  if (filter.states != 0 && (filter.states & (1u << static_cast<unsigned>(job.getState()))) == 0)
    return false;
  if (filter.since_ms != 0 && job.getEndMs() < filter.since_ms) return false;
  if (filter.until_ms != 0 && job.getEndMs() >= filter.until_ms) return false;
  if (filter.array_id != 0 && job.getArrayId() != filter.array_id) return false;
  const auto spec = job.getSpec();
  if (differs(filter.user, spec.getUser()) || differs(filter.queue, spec.getQueue()) ||
      differs(filter.name, spec.getName()))
    return false;
  if (filter.host.empty()) return true;
  for (const auto alloc : job.getAllocs())
    if (!differs(filter.host, alloc.getHost())) return true;
  return false;
}

}  // namespace

std::string encode_record(Index departed, const Job& job) {
  capnp::MallocMessageBuilder message;
  wire::write_job(job, wire::Detail::kFull, message.initRoot<wire::Job>());
  std::string out(reinterpret_cast<const char*>(&departed), sizeof departed);
  out += wire::flatten(message);
  return out;
}

Index departed_of(std::string_view record) {
  Index departed = 0;
  if (record.size() < sizeof departed) return 0;
  std::memcpy(&departed, record.data(), sizeof departed);
  return departed;
}

absl::StatusOr<std::optional<Job>> read_if(std::string_view record, const JobFilter& filter) {
  constexpr size_t kWord = sizeof(capnp::word);
  if (record.size() <= sizeof(Index) || (record.size() - sizeof(Index)) % kWord != 0)
    return absl::DataLossError("a record of a wrong length");
  record.remove_prefix(sizeof(Index));
  // Cap'n Proto wants its words aligned.
  thread_local std::vector<capnp::word> words;
  words.resize(record.size() / kWord);
  std::memcpy(words.data(), record.data(), record.size());
  std::optional<Job> job;
  std::string problem;
  const auto thrown = kj::runCatchingExceptions([&] {
    try {
      capnp::FlatArrayMessageReader reader(kj::arrayPtr(words.data(), words.size()),
                                           wire::reader_options(record.size()));
      const auto root = reader.getRoot<wire::Job>();
      if (may_match(root, filter)) job = wire::read_job(root);
    } catch (const wire::CodecError& error) {
      problem = error.what();
    }
  });
  KJ_IF_MAYBE (exception, thrown) {
    problem = exception->getDescription().cStr();
  }
  if (!problem.empty())
    return absl::DataLossError(absl::StrCat("a record makes no sense: ", problem));
  return job;
}

}  // namespace xce::history
