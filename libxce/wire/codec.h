// Model values to and from their Cap'n Proto form. PURE but for memory: no socket, no clock.
// read_* never trust: lists are bounded, enumerations checked; what is wrong throws CodecError
// (caught by decode_*). Keep this header out of widely included headers: it brings the generated
// code.
#ifndef XCE_LIBXCE_WIRE_CODEC_H_
#define XCE_LIBXCE_WIRE_CODEC_H_

#include <capnp/message.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "libxce/model/command.h"
#include "libxce/model/event.h"
#include "libxce/schema/client.capnp.h"
#include "libxce/schema/log.capnp.h"

namespace xce::wire {

class CodecError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A text as it is. Throws CodecError when it holds a zero byte: C strings, and the writing of
// texts, would end there, and the log would not hold what was checked.
std::string text(capnp::Text::Reader from);

enum class Detail { kSummary, kFull };  // without or with script, arguments and environment

void write_spec(const xce::JobSpec& from, Detail detail, JobSpec::Builder to);
xce::JobSpec read_spec(JobSpec::Reader from);
void write_job(const xce::Job& from, Detail detail, Job::Builder to);
xce::Job read_job(Job::Reader from);
void write_attrs(const xce::HostAttrs& from, HostAttrs::Builder to);
xce::HostAttrs read_attrs(HostAttrs::Reader from);
void write_host(const xce::Host& from, Host::Builder to);
xce::Host read_host(Host::Reader from);
void write_queue(const xce::Queue& from, Queue::Builder to);
xce::Queue read_queue(Queue::Reader from);
void write_reservation(const xce::Reservation& from, Reservation::Builder to);
xce::Reservation read_reservation(Reservation::Reader from);
void write_filter(const xce::JobFilter& from, JobFilter::Builder to);
xce::JobFilter read_filter(JobFilter::Reader from);
void write_event(const xce::Event& from, Detail detail, Event::Builder to);

// Write ops <-> model. read_op returns monostate for an op that is no replicated write.
void write_op(const xce::Op& from, Op::Builder to);
xce::Op read_op(Op::Reader from);

// The bytes of a log entry (a multiple of 8), and back. decode_entry throws CodecError on anything
// malformed.
std::string encode_entry(const xce::Entry& entry);
xce::Entry decode_entry(std::string_view bytes);

// The flat form of a message, as a frame's payload.
std::string flatten(capnp::MessageBuilder& message);
// Options for reading what came over a network: bounded traversal and nesting.
capnp::ReaderOptions reader_options(size_t payload_bytes);

}  // namespace xce::wire

#endif  // XCE_LIBXCE_WIRE_CODEC_H_
