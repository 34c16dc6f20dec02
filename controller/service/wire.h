// Requests from bytes, replies and pushes to bytes. PURE but for memory. Thread: the client I/O
// thread.
#ifndef XCE_CONTROLLER_SERVICE_WIRE_H_
#define XCE_CONTROLLER_SERVICE_WIRE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "controller/push/batch.h"
#include "controller/service/answer.h"
#include "controller/service/request.h"

namespace xce::service {

// The largest submission: what an apiserver or a worker gets back of it in full must fit a frame as
// well.
inline constexpr size_t kMaxSubmitBytes = 3 * 1024 * 1024;

struct Decoded {
  Request request;  // conn, who and flow are the caller's to fill; deadline_ms is still the
                    // caller's remaining time
  Identity hello;   // of a hello
  std::optional<Person> on_behalf;  // whom an apiserver asks for
  std::string version;              // of a hello
};

// Reads one request. InvalidArgument: the bytes are no request at all (close the connection) when
// out->request.seq is 0, or this request makes no sense (answer E_XCE_INVALID) when seq is known.
absl::Status decode_request(const std::vector<uint64_t>& payload, Decoded* out);

// The payload of a frame. An answer that does not fit a frame becomes E_XCE_INVALID that says so.
std::string encode_answer(const Answer& answer);
std::string encode_push(const push::Batch& batch);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_WIRE_H_
