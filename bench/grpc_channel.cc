#include "bench/grpc_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

namespace xce::bench {
namespace {

// Frame types and flags of HTTP/2 (RFC 9113).
constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoAway = 7,
                  kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void put_u32(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

uint32_t get_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

void put_frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload,
               std::string* out) {
  const auto size = static_cast<uint32_t>(payload.size());
  for (int shift = 16; shift >= 0; shift -= 8) out->push_back(static_cast<char>(size >> shift));
  out->push_back(static_cast<char>(type));
  out->push_back(static_cast<char>(flags));
  put_u32(stream, out);
  out->append(payload.data(), payload.size());
}

// A header that is not to be indexed, in plain letters (HPACK, RFC 7541, 6.2.2); all are short.
void put_header(std::string_view name, std::string_view value, std::string* out) {
  out->push_back(0);
  out->push_back(static_cast<char>(name.size()));
  out->append(name.data(), name.size());
  out->push_back(static_cast<char>(value.size()));
  out->append(value.data(), value.size());
}

}  // namespace

void put_bytes_field(int number, std::string_view value, std::string* out) {
  out->push_back(static_cast<char>(number << 3 | 2));
  size_t left = value.size();
  for (; left >= 0x80; left >>= 7) out->push_back(static_cast<char>(left | 0x80));
  out->push_back(static_cast<char>(left));
  out->append(value.data(), value.size());
}

namespace {

std::optional<uint64_t> take_varint(std::string_view* in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

// The first field of that number: its varint, or its bytes.
bool find_field(int number, std::string_view message, uint64_t* varint, std::string_view* bytes) {
  while (!message.empty()) {
    const auto key = take_varint(&message);
    if (!key) return false;
    const bool found = static_cast<int>(*key >> 3) == number;
    const auto value = take_varint(&message);
    if (!value) return false;
    *varint = *value;
    if ((*key & 7) == 2) {
      if (*value > message.size()) return false;
      *bytes = message.substr(0, *value);
      message.remove_prefix(*value);
    } else if ((*key & 7) != 0) {
      return false;  // no others in what we read
    }
    if (found) return true;
  }
  return false;
}

}  // namespace

std::optional<uint64_t> get_varint_field(int number, std::string_view message) {
  uint64_t varint = 0;
  std::string_view bytes;
  if (!find_field(number, message, &varint, &bytes)) return std::nullopt;
  return varint;
}

std::optional<std::string_view> get_bytes_field(int number, std::string_view message) {
  uint64_t varint = 0;
  std::string_view bytes;
  if (!find_field(number, message, &varint, &bytes)) return std::nullopt;
  return bytes;
}

void GrpcChannel::drop() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  next_stream_ = 1;
  buffer_.clear();
  taken_ = 0;
}

bool GrpcChannel::connect() {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::string hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  put_frame(kSettings, 0, 0, "", &hello);
  return send(hello);
}

bool GrpcChannel::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool GrpcChannel::receive(size_t n, std::string* out, int64_t until_us) {
  while (buffer_.size() - taken_ < n) {
    pollfd poll_fd = {fd_, POLLIN, 0};
    const int64_t left_ms = (until_us - now_us() + 999) / 1000;
    if (left_ms <= 0 || poll(&poll_fd, 1, static_cast<int>(left_ms)) <= 0) return false;
    char bytes[16384];
    const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer_.erase(0, taken_);
    taken_ = 0;
    buffer_.append(bytes, static_cast<size_t>(got));
  }
  *out = buffer_.substr(taken_, n);
  taken_ += n;
  return true;
}

bool GrpcChannel::wait_for_answer(uint32_t stream, std::string* answer, int64_t until_us) {
  std::string data;
  for (;;) {
    std::string head, payload, reply;
    if (!receive(9, &head, until_us)) return false;
    const size_t size = get_u32(std::string(1, '\0') + head.substr(0, 3));
    const auto type = static_cast<uint8_t>(head[3]), flags = static_cast<uint8_t>(head[4]);
    const uint32_t from = get_u32(std::string_view(head).substr(5)) & 0x7fffffff;
    if (!receive(size, &payload, until_us)) return false;
    if (type == kGoAway || (type == kReset && from == stream)) return false;
    if (type == kSettings && (flags & kAck) == 0) put_frame(kSettings, kAck, 0, "", &reply);
    if (type == kPing && (flags & kAck) == 0) put_frame(kPing, kAck, 0, payload, &reply);
    if (type == kData && !payload.empty()) {  // what was read may be sent again
      std::string window;
      put_u32(static_cast<uint32_t>(payload.size()), &window);
      put_frame(kWindowUpdate, 0, 0, window, &reply);
    }
    if (!reply.empty() && !send(reply)) return false;
    if (from != stream) continue;
    if (type == kData) data += payload;
    if ((type == kData || type == kHeaders) && (flags & kEndStream) != 0) break;
  }
  // An error has no data, only the headers that end the stream.
  if (data.size() < 5) return false;
  *answer = data.substr(5);
  return true;
}

std::optional<std::string> GrpcChannel::call(std::string_view path, std::string_view message,
                                             int limit_ms) {
  const int64_t until_us = now_us() + int64_t{limit_ms} * 1000;
  if (fd_ < 0 && !connect()) {
    drop();
    return std::nullopt;
  }
  std::string headers;
  put_header(":method", "POST", &headers);
  put_header(":scheme", "http", &headers);
  put_header(":path", path, &headers);
  put_header(":authority", "127.0.0.1", &headers);
  put_header("content-type", "application/grpc", &headers);
  put_header("te", "trailers", &headers);
  std::string data(1, '\0');  // not compressed
  put_u32(static_cast<uint32_t>(message.size()), &data);
  data.append(message.data(), message.size());
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  std::string frames;
  put_frame(kHeaders, kEndHeaders, stream, headers, &frames);
  put_frame(kData, kEndStream, stream, data, &frames);
  std::string answer;
  if (send(frames) && wait_for_answer(stream, &answer, until_us)) return answer;
  drop();
  return std::nullopt;
}

}  // namespace xce::bench
