#include "controller/service/http_request.h"

namespace xce::service {

HttpRequest read_http_request(std::string_view bytes) {
  if (bytes.find("\r\n\r\n") == std::string_view::npos)
    return {bytes.size() > kMaxHttpHead ? HttpRequest::kTooLong : HttpRequest::kIncomplete, ""};
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.compare(second + 1, 7, "HTTP/1.") != 0 ||
      line[first + 1] != '/')
    return {HttpRequest::kMalformed, ""};
  if (line.substr(0, first) != "GET") return {HttpRequest::kNotGet, ""};
  const std::string_view target = line.substr(first + 1, second - first - 1);
  return {HttpRequest::kGet, std::string(target.substr(0, target.find('?')))};
}

}  // namespace xce::service
