// The head of an HTTP/1.1 request: what is asked for. PURE.
#ifndef XCE_CONTROLLER_SERVICE_HTTP_REQUEST_H_
#define XCE_CONTROLLER_SERVICE_HTTP_REQUEST_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace xce::service {

inline constexpr size_t kMaxHttpHead = 8 * 1024;  // request line and headers

struct HttpRequest {
  enum Kind {
    kIncomplete,  // more bytes are needed
    kTooLong,     // more than kMaxHttpHead without an end
    kMalformed,   // no HTTP/1.1 request
    kNotGet,
    kGet
  } kind = kIncomplete;
  std::string path;  // of kGet: begins with '/', without the part from ? on
};

// Reads what has come so far.
HttpRequest read_http_request(std::string_view bytes);

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_HTTP_REQUEST_H_
