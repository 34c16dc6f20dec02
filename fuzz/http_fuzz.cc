// A request to the port for operators' tools.
#include "controller/service/http_request.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xce::service::HttpRequest;
  const std::string_view bytes = xce::fuzz::view(data, size);
  const HttpRequest request = xce::service::read_http_request(bytes);
  if (request.kind == HttpRequest::kIncomplete)
    xce::fuzz::require(size <= xce::service::kMaxHttpHead, "a head has a bound");
  if (request.kind == HttpRequest::kGet)
    xce::fuzz::require(request.path[0] == '/' && request.path.find('?') == std::string::npos,
                       "a path is a path");
  return 0;
}
