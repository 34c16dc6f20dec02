// The terminal that people see: standard output and error, colour, width, signals. I/O; main
// thread.
#ifndef XCE_CLI_TERMINAL_H_
#define XCE_CLI_TERMINAL_H_

#include <cstddef>
#include <string_view>

namespace xce::cli {

// Colour on standard output: a terminal, NO_COLOR not set, TERM not "dumb".
bool use_colour();
// Columns of the terminal on standard output; 0 when there is none.
size_t terminal_width();

// Writes to standard output at once. A reader that has gone away ends the process quietly (as
// SIGPIPE would, code 141); a full disk ends it with a message and code 1.
void print(std::string_view text);
// One line "xce: <text>" on standard error.
void complain(std::string_view text);
// The name before the colon: "xce" unless set.
void set_program_name(const char* name);

// Ignores SIGPIPE and makes SIGINT and SIGTERM end the process with 128+signal after writing `note`
// (may be empty; must live for ever) to standard error.
void install_signal_handlers();
void set_interrupt_note(const char* note);
// From now on the first SIGINT or SIGTERM is only remembered; the second ends the process.
void remember_interrupt();
// The remembered signal, or 0.
int interrupted();
// Readable once a signal is remembered, for poll(); -1 (which poll() leaves alone) before
// remember_interrupt().
int interrupt_fd();
// Sleeps; returns early when a signal is remembered.
void sleep_ms(int ms);
// Milliseconds of a clock that never goes back.
long long steady_ms();

}  // namespace xce::cli

#endif  // XCE_CLI_TERMINAL_H_
