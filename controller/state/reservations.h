// Reservations: hosts, or cpus of them, that an operator keeps for some users and queues for a
// time. PURE.
//
// Jobs for which a reservation is may run there as anywhere else. Others start there only when they
// end before it begins, by their time limits; what already runs when a reservation is made goes on.
// The scheduler plans by this, and scheduler.cc refuses dispatches that were planned before.
#ifndef XCE_CONTROLLER_STATE_RESERVATIONS_H_
#define XCE_CONTROLLER_STATE_RESERVATIONS_H_

#include <vector>

#include "libxce/model/command.h"

namespace xce::state {

struct Tables;
struct Turn;

inline constexpr size_t kMaxReservations = 1000;

Result control_reservation(Turn& turn, const Command& command, const ReservationControl& control);
// Removes those that are over.
void end_reservations(Turn& turn);
// Whether reservations allow that the job starts now with these allocations.
bool reservations_permit(const Tables& tables, const Job& job, const std::vector<Alloc>& allocs);

}  // namespace xce::state

#endif  // XCE_CONTROLLER_STATE_RESERVATIONS_H_
