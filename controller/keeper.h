// Ends this process's connections the moment it dies.
//
// A process that is killed gives its memory back before it closes its descriptors: a tenth of a
// millisecond and more for each MB, during which the standbys hold a dead primary for a live one.
// The keeper is a small child that shares our table of descriptors and waits for a robust futex,
// which the kernel releases before it looks at the memory. Then it shuts every socket down, so that
// peers and clients hear of the death at once. It dies with us, and does nothing else.
#ifndef XCE_CONTROLLER_KEEPER_H_
#define XCE_CONTROLLER_KEEPER_H_

namespace xce {

// Starts the keeper of the calling thread, which must be the main one and the only one so far, and
// whose process should still be small. False: there is none, for errno's reason; then connections
// end a little later, as for any other process.
bool start_keeper();

}  // namespace xce

#endif  // XCE_CONTROLLER_KEEPER_H_
