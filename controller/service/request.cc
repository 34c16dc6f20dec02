#include "controller/service/request.h"

namespace xce::service {

const char* name_of(Ask ask) {
  static constexpr const char* kNames[kAsks] = {"nop",
                                                "hello",
                                                "jobList",
                                                "jobInfo",
                                                "jobHist",
                                                "workerList",
                                                "queueList",
                                                "userList",
                                                "resList",
                                                "resVal",
                                                "clusterConf",
                                                "clusterStatus",
                                                "jobLog",
                                                "join",
                                                "jobSubmit",
                                                "jobCtrl",
                                                "queueCtrl",
                                                "hostCtrl",
                                                "updateResvals",
                                                "runTask",
                                                "jobDispatch",
                                                "setPendReason",
                                                "schedAdmin",
                                                "memberCtrl",
                                                "notify",
                                                "heartbeat",
                                                "wakeup",
                                                "subscribe",
                                                "unsubscribe",
                                                "backup",
                                                "tick",
                                                "hostLost",
                                                "jobLogData",
                                                "backupRead",
                                                "estimates",
                                                "reservationCtrl",
                                                "reservationList"};
  const auto i = static_cast<size_t>(ask);
  return i < kAsks ? kNames[i] : "?";
}

}  // namespace xce::service
