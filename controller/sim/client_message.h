// What travels between clients and controllers in the simulation: requests and answers as values.
#ifndef XCE_CONTROLLER_SIM_CLIENT_MESSAGE_H_
#define XCE_CONTROLLER_SIM_CLIENT_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "controller/service/answer.h"
#include "controller/service/request.h"

namespace xce::sim {

struct PeerPreamble {};  // the first packet of a connection between controllers
struct ClientPreamble {
  std::shared_ptr<const Identity> who;
};
struct ToServer {
  service::Request request;  // its deadline is how long the caller still waits, in milliseconds
};
struct ToClient {
  service::Answer answer;
};

}  // namespace xce::sim

#endif  // XCE_CONTROLLER_SIM_CLIENT_MESSAGE_H_
