#include "controller/service/huge_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace xce::service {
namespace {

constexpr int kStep = 32 << 20;        // by which the heap grows
constexpr int kMappedBytes = 8 << 20;  // and more of them at once are not from the heap
constexpr uintptr_t kLargePage = uintptr_t{2} << 20;

uintptr_t heap_end() { return reinterpret_cast<uintptr_t>(::sbrk(0)); }

}  // namespace

HugeHeap::HugeHeap() : advised_(heap_end()) {
  ::mallopt(M_TOP_PAD, kStep);
  // With one of these set glibc adjusts none of them by itself any more.
  ::mallopt(M_TRIM_THRESHOLD, 8 * kStep);
  ::mallopt(M_MMAP_THRESHOLD, kMappedBytes);
}

void HugeHeap::advise() {
  const uintptr_t end = heap_end() / kLargePage * kLargePage;
  if (end < advised_) advised_ = end;  // it has shrunk: what comes back is new
  const uintptr_t begin = (advised_ + kLargePage - 1) / kLargePage * kLargePage;
  if (begin >= end) return;
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  advised_ = end;
}

}  // namespace xce::service
