// Between the wire's messages and the C structs of xce/types.h. What comes in is not trusted beyond
// what Cap'n Proto checks: enumerations out of range become the nearest sensible value. May throw
// kj::Exception on malformed messages.
#ifndef XCE_LIBXCE_CLIENT_CONVERT_H_
#define XCE_LIBXCE_CLIENT_CONVERT_H_

#include <kj/debug.h>

#include <cstdint>

#include "libxce/client/arena.h"
#include "libxce/schema/client.capnp.h"
#include "xce/client.h"

namespace xce::client {

// The length of a list. Throws kj::Exception when no controller sends as many: a list of empty
// structs claims any length in a few bytes.
inline constexpr unsigned kMaxRows = 100000;
template <typename List>
unsigned rows(const List& list) {
  KJ_REQUIRE(list.size() <= kMaxRows, "a list is too long", list.size());
  return list.size();
}

// From the wire: all memory comes from the arena.
xce_job_t job_of(wire::Job::Reader from, Arena* arena);
xce_host_t host_of(wire::Host::Reader from, Arena* arena);
xce_queue_t queue_of(wire::Queue::Reader from, Arena* arena);
xce_reservation_t reservation_of(wire::Reservation::Reader from, Arena* arena);
xce_user_t user_of(wire::User::Reader from, Arena* arena);
const xce_gres_t* gres_of(capnp::List<wire::Gres>::Reader from, Arena* arena);
xce_node_t node_of(wire::Node::Reader from, Arena* arena);
xce_event_t event_of(wire::Event::Reader from, uint64_t revision, Arena* arena);
const char* text_of(capnp::Text::Reader from, Arena* arena);

// To the wire. NULL strings are left out.
void put_spec(const xce_job_spec_t& from, wire::JobSpec::Builder to);
void put_filter(const xce_job_filter_t& from, wire::JobFilter::Builder to);
void put_attrs(const xce_host_attrs_t& from, wire::HostAttrs::Builder to);
void put_queue(const xce_queue_t& from, wire::Queue::Builder to);
void put_reservation(const xce_reservation_t& from, wire::Reservation::Builder to);
void put_gres(const xce_gres_t* from, size_t n, capnp::List<wire::Gres>::Builder to);
void put_alloc(const xce_alloc_t& from, wire::Alloc::Builder to);
void put_report(const xce_report_t& from, wire::Report::Builder to);

// FNV-1a over every field of a submission but its submit key: tells a replay from another
// submission of that key.
uint64_t body_hash(const xce_job_spec_t& spec);

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_CONVERT_H_
