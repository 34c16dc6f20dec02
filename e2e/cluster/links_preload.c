// Preloaded into a daemon under test: what it dials on 127.0.0.1 goes through the link of that
// port, as XCE_TEST_LINKS says ("9990=40001,9991=40002"), also when a redirect named the port.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// The port to dial instead of this one.
static in_port_t link_of(in_port_t port) {
  const char* at = getenv("XCE_TEST_LINKS");
  while (at != NULL && *at != 0) {
    char* end = NULL;
    const long from = strtol(at, &end, 10);
    if (*end != '=') break;
    const long to = strtol(end + 1, &end, 10);
    if (from == ntohs(port)) return htons((in_port_t)to);
    at = *end == ',' ? end + 1 : NULL;
  }
  return port;
}

int connect(int fd, const struct sockaddr* address, socklen_t length) {
  static int (*real_connect)(int, const struct sockaddr*, socklen_t);
  if (real_connect == NULL)
    real_connect = (int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect");
  struct sockaddr_in in;
  if (address->sa_family != AF_INET || length != sizeof in)
    return real_connect(fd, address, length);
  memcpy(&in, address, sizeof in);
  in.sin_port = link_of(in.sin_port);
  return real_connect(fd, (const struct sockaddr*)&in, sizeof in);
}
