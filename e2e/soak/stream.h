// A program that follows the apiserver's stream of changes as docs/rest.md tells it to: it resumes
// with Last-Event-ID after every lost connection, and reads everything anew when it is told that
// something is missing. At the end it must know how every job ended. I/O, a thread of its own.
#ifndef XCE_E2E_SOAK_STREAM_H_
#define XCE_E2E_SOAK_STREAM_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "e2e/cluster/client.h"
#include "e2e/cluster/http.h"
#include "e2e/cluster/process.h"

namespace xce::e2e {

struct StreamCounts {
  size_t events = 0;
  size_t connections = 0;
  size_t resumes = 0;  // of these: with a Last-Event-ID that was good
  size_t gone = 0;     // 410
  size_t gaps = 0;
  size_t listings = 0;
};

class StreamReader {
 public:
  // Keeps what it gets in `dir`. `list` tells every job.
  StreamReader(Http http, std::string dir, std::function<std::map<uint64_t, JobRow>()> list);
  ~StreamReader() { stop(); }
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  void start();
  void stop();
  // Waits until it knows of each of these jobs what the cluster says. Of which it does not, in
  // words.
  std::vector<std::string> wait_for(const std::map<uint64_t, JobRow>& jobs,
                                    milliseconds limit) const;
  StreamCounts counts() const;

 private:
  void run();
  void follow(int number);
  void take_line(const std::string& line);
  void take_data(const std::string& text);
  void list_anew();

  const Http http_;
  const std::string dir_;
  const std::function<std::map<uint64_t, JobRow>()> list_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  // Of the thread.
  std::string last_id_;
  bool list_wanted_ = false;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::string> states_;  // of jobs, as "COMPLETED"
  StreamCounts counts_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_SOAK_STREAM_H_
