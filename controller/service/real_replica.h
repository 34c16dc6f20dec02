// The service's Replica over controller/consensus. Thread: the consensus thread.
#ifndef XCE_CONTROLLER_SERVICE_REAL_REPLICA_H_
#define XCE_CONTROLLER_SERVICE_REAL_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "controller/consensus/consensus.h"
#include "controller/history/history.h"
#include "controller/service/replica.h"

namespace xce::service {

RoleView role_view(const consensus::RoleInfo& info);

class RealReplica : public Replica {
 public:
  // options: as given to consensus; own_port: where this node really listens.
  RealReplica(consensus::Consensus* consensus, const consensus::Options* options,
              history::History* history)
      : consensus_(consensus), options_(options), history_(history) {}
  void set_own_address(std::string host, uint16_t port) {
    own_host_ = std::move(host);
    own_port_ = port;
  }

  void propose(std::string entry, std::function<void(const Proposed&)> done) override;
  void barrier(std::function<void(bool)> done) override { consensus_->barrier(std::move(done)); }
  void transfer(uint64_t to, std::function<void(const std::string&)> done) override;
  void change_members(const MemberControl& wish, bool resent, Index birth,
                      std::function<void(const MembersChanged&)> done) override;
  void backup(BackupReady ready) override;
  void adopt_peer(int fd, std::string already_read, std::shared_ptr<net::TlsSession> tls) override {
    consensus_->adopt_peer(fd, std::move(already_read), std::move(tls));
  }
  RoleView role() const override { return role_view(consensus_->role()); }
  bool address_of(uint64_t node, std::string* host, uint16_t* port) const override;
  void describe(ClusterView* view) const override;
  uint64_t cluster_id() const override { return consensus_->cluster_id(); }
  void measure(DiskView* view) const override;

 private:
  consensus::Consensus* const consensus_;
  const consensus::Options* const options_;
  history::History* const history_;
  std::string own_host_;
  uint16_t own_port_ = 0;
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_REAL_REPLICA_H_
