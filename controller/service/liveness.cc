#include "controller/service/liveness.h"

#include <algorithm>

namespace xce::service {

void Liveness::restart(uint64_t now_ms) {
  since_ms_ = looked_ms_ = now_ms;
  heard_ms_.clear();
  named_ms_.clear();
  gone_ms_.clear();
}

uint64_t Liveness::last_heard(const std::string& host) const {
  const auto heard = heard_ms_.find(host);
  return std::max(since_ms_, heard == heard_ms_.end() ? 0 : heard->second);
}

std::vector<std::string> Liveness::gone(const std::map<std::string, Host>& hosts, uint64_t now_ms) {
  std::vector<std::string> out;
  for (const auto& [name, host] : hosts) {
    const uint64_t silence_ms = uint64_t{host.lease_ms} + host.lease_ms / 10 + kFenceMs;
    if (host.state != HostState::kUnreachable || host.lease_ms == 0 ||
        now_ms - last_heard(name) < silence_ms)
      continue;
    uint64_t& named = gone_ms_[name];
    if (named > last_heard(name) && now_ms - named < grace_ms_) continue;
    named = now_ms;
    out.push_back(name);
  }
  return out;
}

void Liveness::heard(std::string_view host, uint64_t now_ms) {
  const auto it = heard_ms_.find(host);
  if (it != heard_ms_.end())
    it->second = now_ms;
  else
    heard_ms_.emplace(host, now_ms);
}

std::vector<std::string> Liveness::lost(const std::map<std::string, Host>& hosts, uint64_t now_ms) {
  if (now_ms - looked_ms_ > grace_ms_ / 2) restart(now_ms);
  looked_ms_ = now_ms;
  std::vector<std::string> out;
  for (const auto& [name, host] : hosts) {
    if (host.state != HostState::kUp && host.state != HostState::kDrained) continue;
    if (now_ms - last_heard(name) < grace_ms_) continue;
    uint64_t& named = named_ms_[name];
    if (named != 0 && now_ms - named < grace_ms_) continue;
    named = now_ms;
    out.push_back(name);
  }
  return out;
}

}  // namespace xce::service
