// A daemon under test as a process of its own, and what it says on standard error. One thread.
#ifndef XCE_LIBXCE_CLIENT_TESTING_PROGRAM_H_
#define XCE_LIBXCE_CLIENT_TESTING_PROGRAM_H_

#include <sys/types.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace xce::client {

class Program {
 public:
  // Starts `path`, which is relative to the test's runfiles, with these arguments.
  Program(const std::string& path, std::vector<std::string> args);
  ~Program();  // kills it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string said();  // so far
  // Waits until it has said that; false: it has not, in so many seconds.
  bool says(const std::string& words, int seconds = 20);
  void signal(int number);
  // Waits for its end; the exit code, or 1000 + the signal that ended it. Once.
  int wait();

 private:
  pid_t pid_ = 0;
  std::thread reader_;
  std::mutex mutex_;
  std::string said_;  // guarded by mutex_
};

}  // namespace xce::client

#endif  // XCE_LIBXCE_CLIENT_TESTING_PROGRAM_H_
