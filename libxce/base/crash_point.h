// Named points at which a test can end a daemon as SIGKILL would: XCE_CRASH_AT=NAME or NAME:N in
// its environment, at the Nth passing (1 if not said). Without the variable a point costs the load
// of a flag. Any thread; also in a child that the daemon has forked: daemon and child end together.
#ifndef XCE_LIBXCE_BASE_CRASH_POINT_H_
#define XCE_LIBXCE_BASE_CRASH_POINT_H_

namespace xce {

extern const bool crash_points_armed;

void pass_armed_crash_point(const char* name);

inline void crash_point(const char* name) {
  if (crash_points_armed) pass_armed_crash_point(name);
}

}  // namespace xce

#endif  // XCE_LIBXCE_BASE_CRASH_POINT_H_
