// Clients of every kind at work: libxce, an operator who kills and releases, the command line, REST
// with Idempotency-Keys. Each repeats what it may repeat, keeps books of what was acknowledged, and
// calls everything else a failure. I/O, threads of its own.
#ifndef XCE_E2E_SOAK_LOAD_H_
#define XCE_E2E_SOAK_LOAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "e2e/cluster/client.h"
#include "e2e/cluster/http.h"
#include "e2e/cluster/run.h"
#include "e2e/demo/ledger.h"

namespace xce::e2e {

struct LoadOptions {
  std::string masters;
  std::string work_dir;
  std::string api_address;  // "": nobody uses REST
  std::string token;        // of REST requests
  ClientTls tls;
  uint64_t seed = 1;
  int think_ms = 60;     // longest pause of a client between two requests
  bool requeue = false;  // some jobs may be started again when their host is lost
};

// Of one client; also the name of its jobs.
struct ClientBooks {
  size_t acknowledged = 0;  // jobs
  size_t repeats = 0;       // requests that were sent again under their key
  size_t refused = 0;       // of these: nobody listened (an apiserver that is being restarted)
  size_t cut = 0;           // of these: the connection ended without an answer
  double longest_ms = 0;    // from the first try of a request to its acknowledgement
};

// What a client was told, and what the cluster knows of its jobs.
struct ClientBalance {
  std::string name;
  ClientBooks books;
  size_t finished = 0, pending = 0, running = 0;
  bool even() const { return books.acknowledged == finished + pending + running; }
};

class Load {
 public:
  Load(LoadOptions options, Ledger* ledger) : options_(std::move(options)), ledger_(*ledger) {}
  ~Load() { stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void start();
  // Returns when each client has had an answer to what it asked.
  void stop();
  std::vector<ClientBalance> balance(const std::map<uint64_t, JobRow>& jobs) const;
  // What failed, in words; the first ones.
  std::vector<std::string> failures() const;
  // The environment of a command line for this cluster.
  std::vector<std::string> cli_environment() const;

 private:
  struct Job {
    std::string command;
    std::string outcome;  // what it ends in
    int exit_code = 0;
    bool requeue = false;
  };
  class Random {
   public:
    explicit Random(uint64_t seed) : engine_(seed) {}
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(engine_() % n); }

   private:
    std::mt19937_64 engine_;
  };

  void run(const std::string& name, const std::function<void(Random*)>& turn);
  Job some_job(Random* random);
  void library(Client* client, const std::string& name, Random* random);
  void operate(Client* client, Random* random);
  void command_line(Random* random, int turn);
  void wait_by_command_line(const std::string& id, int exit_code);
  Finished run_program(const std::vector<std::string>& args) const;
  void rest(const Http& http, const std::string& name, Random* random, int turn);
  bool booked(const std::string& name, int64_t id, uint32_t count, const Job& job,
              Clock::time_point began);
  void failed(const std::string& name, const std::string& what);
  void again(const std::string& name, bool refused = false, bool cut = false);

  const LoadOptions options_;
  Ledger& ledger_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::map<std::string, ClientBooks> books_;
  std::vector<std::string> failures_;
};

}  // namespace xce::e2e

#endif  // XCE_E2E_SOAK_LOAD_H_
