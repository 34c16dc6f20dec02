#include "cli/terminal.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cli/exit_code.h"

namespace xce::cli {
namespace {

const char* program_name = "xce";
std::atomic<const char*> interrupt_note{""};
std::atomic<bool> remember{false};
std::atomic<int> remembered{0};
std::atomic<int> remembered_fd{-1};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Only what a signal handler may do.
void on_signal(int signal) {
  if (remember.load() && remembered.load() == 0) {
    remembered.store(signal);
    const uint64_t one = 1;
    const ssize_t ignored = ::write(remembered_fd.load(), &one, sizeof(one));
    (void)ignored;
    return;
  }
  const char* note = interrupt_note.load();
  if (note[0] != '\0') {
    const ssize_t ignored = ::write(2, note, std::strlen(note));
    (void)ignored;
  }
  _exit(128 + signal);
}

}  // namespace

bool use_colour() {
  static const bool value = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return ::isatty(1) == 1 && (no_color == nullptr || no_color[0] == '\0') && term != nullptr &&
           std::string_view(term) != "dumb";
  }();
  return value;
}

size_t terminal_width() {
  winsize size{};
  if (::isatty(1) != 1 || ::ioctl(1, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

void print(std::string_view text) {
  if (write_all(1, text)) return;
  if (errno == EPIPE) _exit(141);
  complain(std::string("cannot write the output: ") + std::strerror(errno));
  _exit(kFailure);
}

void complain(std::string_view text) {
  std::string line = std::string(program_name) + ": " + std::string(text) + "\n";
  write_all(2, line);
}

void set_program_name(const char* name) { program_name = name; }

void install_signal_handlers() {
  ::signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);  // nohup and & keep what they asked for
  }
}

void set_interrupt_note(const char* note) { interrupt_note.store(note); }
void remember_interrupt() {
  if (remembered_fd.load() < 0) remembered_fd.store(::eventfd(0, EFD_CLOEXEC));
  remember.store(true);
}
int interrupted() { return remembered.load(); }
int interrupt_fd() { return remembered_fd.load(); }

long long steady_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(int ms) {
  const long long end = steady_ms() + ms;
  while (interrupted() == 0) {
    const long long left = end - steady_ms();
    if (left <= 0) return;
    const timespec nap{0, static_cast<long>(left < 50 ? left : 50) *
                              1000000};  // a signal may land on another thread
    ::nanosleep(&nap, nullptr);
  }
}

}  // namespace xce::cli
