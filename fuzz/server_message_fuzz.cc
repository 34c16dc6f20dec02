// What a controller says, as libxce takes it: every kind of push and of answer.
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "fuzz/fuzz.h"
#include "libxce/client/arena.h"
#include "libxce/client/convert.h"
#include "libxce/wire/codec.h"

namespace {

namespace wire = xce::wire;
using xce::client::Arena;

template <typename List, typename Convert>
void each(const List& list, Convert convert) {
  const unsigned n = xce::client::rows(list);
  for (unsigned i = 0; i < n; ++i) convert(list[i]);
}

void take_body(wire::Body::Reader body, Arena* arena) {
  switch (body.which()) {
    case wire::Body::JOBS:
      each(body.getJobs().getJobs(), [&](auto job) { xce::client::job_of(job, arena); });
      break;
    case wire::Body::HOSTS:
      each(body.getHosts(), [&](auto host) { xce::client::host_of(host, arena); });
      break;
    case wire::Body::QUEUES:
      each(body.getQueues(), [&](auto queue) { xce::client::queue_of(queue, arena); });
      break;
    case wire::Body::USERS:
      each(body.getUsers(), [&](auto user) { xce::client::user_of(user, arena); });
      break;
    case wire::Body::GRES: xce::client::gres_of(body.getGres(), arena); break;
    case wire::Body::CONF:
      each(body.getConf().getNodes(), [&](auto node) { xce::client::node_of(node, arena); });
      break;
    case wire::Body::CLUSTER:
      each(body.getCluster().getNodes(), [&](auto node) { xce::client::node_of(node, arena); });
      break;
    default: break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint64_t> words = xce::fuzz::words(xce::fuzz::view(data, size));
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        wire::reader_options(words.size() * 8));
    const auto message = reader.getRoot<wire::ServerMessage>();
    Arena arena;
    if (message.isPush()) {
      for (const auto event : message.getPush().getEvents())
        xce::client::event_of(event, message.getPush().getRevision(), &arena);
    } else {
      take_body(message.getReply().getBody(), &arena);
    }
  } catch (const kj::Exception&) {
    return 0;
  }
  return 0;
}
