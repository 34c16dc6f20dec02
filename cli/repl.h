// xce_test's commands: each is one libxce call and one line of answer, "ok ..." or "error
// E_XCE_...: ...". I/O; one thread.
//
// The harness of the failover specs: what it prints is what libxce returned, without the comforts
// of `xce`.
#ifndef XCE_CLI_REPL_H_
#define XCE_CLI_REPL_H_

#include <xce/client.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace xce::cli {

class Repl {
 public:
  // masters: "host:port,..."; checked by the first command that needs them, or by `set masters`.
  // tls: paths of PEM files, ca, cert and key; empty: without TLS.
  Repl(std::string masters, int timeout_ms, std::vector<std::string> tls = {})
      : masters_(std::move(masters)), timeout_ms_(timeout_ms), tls_(std::move(tls)) {}
  ~Repl() { disconnect(); }
  Repl(const Repl&) = delete;
  Repl& operator=(const Repl&) = delete;

  struct Answer {
    bool ok = true;
    std::string text;  // without line end; "" for an empty line or a comment
    bool quit = false;
  };
  // Runs one line.
  Answer execute(const std::string& line);
  // For completion and help.
  static std::vector<std::string> command_names();

 private:
  using Words = std::vector<std::string>;

  int connect();  // 0, or what xcecli_start returned; the context is usable anyway unless it could
                  // not be made
  void disconnect();
  Answer failed(int rc) const;
  Answer with_context(const std::function<Answer(xcecli_ctx_t)>& op);

  Answer set(const Words& words);
  Answer hello();
  Answer joblist(const Words& words);
  Answer jobinfo(const Words& words);
  Answer jobsub(const Words& words);
  Answer jobctrl(const Words& words);
  Answer workerlist();
  Answer queuelist();
  Answer cluster(bool status);
  Answer stats();

  std::string masters_;
  int timeout_ms_;
  const std::vector<std::string> tls_;
  xcecli_ctx_t ctx_ = nullptr;
  std::string bad_masters_;  // what is wrong with masters_
};

}  // namespace xce::cli

#endif  // XCE_CLI_REPL_H_
