// Large pages under the main heap, where the state of the consensus thread lies. A fork (of which
// each snapshot is made) copies the page tables: 0.1 ms a MB with small pages, next to nothing with
// large ones; and a killed process gives large pages back faster.
//
// Thread: the main one, whose heap it is. The kernel decides in the end: with
// /sys/kernel/mm/transparent_hugepage/enabled at "never" nothing changes.
#ifndef XCE_CONTROLLER_SERVICE_HUGE_HEAP_H_
#define XCE_CONTROLLER_SERVICE_HUGE_HEAP_H_

#include <cstdint>

namespace xce::service {

class HugeHeap {
 public:
  // Makes the heap grow in large steps from now on.
  HugeHeap();
  // Asks for large pages where the heap has grown since. Cheap when it has not: call it often, for
  // memory that was touched before keeps its small pages for long.
  void advise();

 private:
  uintptr_t advised_;  // up to this address
};

}  // namespace xce::service

#endif  // XCE_CONTROLLER_SERVICE_HUGE_HEAP_H_
