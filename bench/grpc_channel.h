// As much of gRPC as a load generator needs: unary calls, one at a time, over one HTTP/2 connection
// without TLS. A call that the server refuses counts as failed; why is not read. I/O, one thread.
#ifndef XCE_BENCH_GRPC_CHANNEL_H_
#define XCE_BENCH_GRPC_CHANNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xce::bench {

class GrpcChannel {
 public:
  explicit GrpcChannel(uint16_t port) : port_(port) {}  // on 127.0.0.1
  ~GrpcChannel() { drop(); }
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  // The answer's bytes; nullopt when there was none within the limit, or an error. Connects when
  // there is no connection, and drops it after a failure.
  std::optional<std::string> call(std::string_view path, std::string_view message, int limit_ms);

 private:
  bool connect();
  void drop();
  bool send(std::string_view bytes);
  bool receive(size_t n, std::string* out, int64_t until_us);
  bool wait_for_answer(uint32_t stream, std::string* answer, int64_t until_us);

  const uint16_t port_;
  int fd_ = -1;
  uint32_t next_stream_ = 1;
  std::string buffer_;
  size_t taken_ = 0;
};

// Protocol buffers, as much as etcd's small messages need.
void put_bytes_field(int number, std::string_view value, std::string* out);
// The field's number as a varint, or nullopt. Of nested messages: parse get_bytes_field's value.
std::optional<uint64_t> get_varint_field(int number, std::string_view message);
std::optional<std::string_view> get_bytes_field(int number, std::string_view message);

}  // namespace xce::bench

#endif  // XCE_BENCH_GRPC_CHANNEL_H_
