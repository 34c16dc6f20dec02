#include "scheduler/policy/fair_share.h"

#include <algorithm>
#include <cmath>

namespace xce::sched {

double FairShare::decay(int64_t ms) const {
  return std::exp2(-static_cast<double>(ms) / static_cast<double>(half_life_ms_));
}

double FairShare::accrued(int64_t ms) const {
  const double half_lives = static_cast<double>(ms) / static_cast<double>(half_life_ms_);
  const double mean_life_s = static_cast<double>(half_life_ms_) / 1000.0 / std::log(2.0);
  return -mean_life_s * std::expm1(-half_lives * std::log(2.0));
}

double FairShare::value(const Account& account, int64_t at_ms) const {
  const int64_t passed_ms = std::max<int64_t>(at_ms - account.at_ms, 0);
  return account.used * decay(passed_ms) + static_cast<double>(account.cpus) * accrued(passed_ms);
}

// So many cpus more (or fewer) are held since time_ms, which may lie before what is known.
void FairShare::change(NameId user, int64_t cpus, int64_t time_ms) {
  if (!on()) return;
  auto [it, fresh] = accounts_.try_emplace(user);
  Account& account = it->second;
  if (fresh) account.at_ms = time_ms;
  if (time_ms > account.at_ms) {
    account.used = value(account, time_ms);
    account.at_ms = time_ms;
  } else {
    account.used += static_cast<double>(cpus) * accrued(account.at_ms - time_ms);
  }
  account.cpus += cpus;
  // Sums of rounded numbers: an account of which nothing is left must not be a little less.
  account.used = std::max(account.used, 0.0);
}

void FairShare::start(NameId user, uint32_t cpus, int64_t from_ms) { change(user, cpus, from_ms); }

void FairShare::end(NameId user, uint32_t cpus, int64_t until_ms) {
  change(user, -static_cast<int64_t>(cpus), until_ms);
}

double FairShare::usage(NameId user, int64_t now_ms) const {
  auto it = accounts_.find(user);
  return it == accounts_.end() ? 0 : value(it->second, now_ms);
}

}  // namespace xce::sched
