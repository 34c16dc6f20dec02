// The view's part that is about reservations.
#include "scheduler/policy/view.h"

namespace xce::sched {

void View::put_reservation(const Reservation& reservation) {
  const auto gone = reservations_gone_.find(reservation.name);
  if (gone != reservations_gone_.end() && reservation.modify_index < gone->second) return;
  std::shared_ptr<Kept>& kept = reservations_[reservation.name];
  if (kept && reservation.modify_index < kept->modify_index) {
    kept->seen = seen_;
    return;
  }
  kept = std::make_shared<Kept>();  // another one may be looked at elsewhere: estimate.h
  kept->name = reservation.name;
  kept->cpus = reservation.cpus;
  kept->start_ms = reservation.start_ms;
  kept->end_ms = reservation.end_ms;
  kept->hosts = reservation.hosts;
  for (const std::string& user : reservation.users) kept->users.push_back(intern(user));
  for (const std::string& queue : reservation.queues) kept->queues.push_back(intern(queue));
  kept->modify_index = reservation.modify_index;
  kept->seen = seen_;
  reservations_changed();
}

void View::remove_reservation(const std::string& name, Index revision) {
  if (retaking_) reservations_gone_[name] = revision;
  if (reservations_.erase(name) > 0) reservations_changed();
}

void View::reservations_changed() {
  std::vector<std::shared_ptr<const Kept>> all;
  for (const auto& [name, kept] : reservations_) all.push_back(kept);
  hosts_.set_kept(all);
}

}  // namespace xce::sched
