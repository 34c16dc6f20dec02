#include "cli/repl.h"

#include <unistd.h>
#include <xce/cluster.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/labels.h"
#include "cli/parse.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

constexpr size_t kShown = 50;  // items on a line of answer

constexpr char kHelp[] =
    "ok commands:\n"
    "  set masters HOST:PORT,...   the controllers to try\n"
    "  set timeout MS              deadline of each call\n"
    "  hello                       who answers\n"
    "  joblist [STATE,...]         jobs by id\n"
    "  jobinfo ID                  one job\n"
    "  jobsub [NAME] -- COMMAND... submit a command\n"
    "  jobctrl ACTION ID...        kill suspend resume hold release requeue\n"
    "  workerlist, queuelist       hosts, queues\n"
    "  clusterconf, clusterstatus  the controllers\n"
    "  stats                       counters of libxce\n"
    "  help, quit";

Repl::Answer ok(const std::string& text) {
  return {true, text.empty() ? "ok" : "ok " + printable(text), false};
}

Repl::Answer invalid(const std::string& text) {
  return {false, "error EINVAL: " + printable(text), false};
}

bool parse_action(const std::string& word, xce_jobctrl_action_t* action) {
  static constexpr const char* kNames[] = {"kill", "suspend", "resume",
                                           "hold", "release", "requeue"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (word == kNames[i]) {
      *action = static_cast<xce_jobctrl_action_t>(i);
      return true;
    }
  }
  return false;
}

std::string job_words(const xce_job_t& job) {
  std::string out =
      absl::StrCat("id=", job.id, " state=", state_word(job.state), " name=", job.spec.name,
                   " user=", job.spec.user, " queue=", job.spec.queue, " attempt=", job.attempt);
  if (job.array_id != 0)
    absl::StrAppend(&out, " array_id=", job.array_id, " array_index=", job.array_index);
  if (job.nallocs > 0) absl::StrAppend(&out, " hosts=", hosts_of(job));
  if (is_ended(job))
    absl::StrAppend(&out, " exit_code=", job.exit_code, " exit_signal=", job.exit_signal);
  if (job.reason[0] != '\0') absl::StrAppend(&out, " reason=\"", job.reason, "\"");
  return out;
}

}  // namespace

std::vector<std::string> Repl::command_names() {
  return {"set masters",   "set timeout", "hello",      "joblist",   "jobinfo",
          "jobsub",        "jobctrl",     "workerlist", "queuelist", "clusterconf",
          "clusterstatus", "stats",       "help",       "quit"};
}

void Repl::disconnect() {
  if (ctx_ == nullptr) return;
  xcecli_stop(ctx_);
  xcecli_ctx_free(ctx_);
  ctx_ = nullptr;
}

int Repl::connect() {
  if (ctx_ != nullptr) return 0;
  xce_cluster_config_t cluster{};
  char why[512] = "";
  if (xce_parse_peers(masters_.c_str(), &cluster, why, sizeof(why)) != 0 ||
      xce_cluster_config_validate(&cluster, why, sizeof(why)) != 0) {
    bad_masters_ = why;
    return -EINVAL;
  }
  bad_masters_.clear();
  xce_client_config_t config{};
  xce_client_config_init(&config);
  xce_cluster_config_to_client_config(&cluster, &config);
  config.role = HostRole_user;
  config.call_deadline_ms = timeout_ms_;
  if (tls_.size() == 3 &&
      xce_client_config_set_tls(&config, tls_[0].c_str(), tls_[1].c_str(), tls_[2].c_str()) < 0)
    return -EINVAL;
  const int rc = xcecli_ctx_init(&ctx_, &config);
  if (rc < 0) {
    ctx_ = nullptr;
    return rc;
  }
  return xcecli_start(ctx_);
}

Repl::Answer Repl::failed(int rc) const {
  if (!bad_masters_.empty()) return invalid(bad_masters_ + "; set masters host:port,...");
  xce_error_t last{};
  xcecli_last_error(&last);
  const bool about_this = last.status == rc && last.message[0] != '\0';
  std::string text = absl::StrCat("error ", xce_errname(rc), ": ",
                                  printable(about_this ? last.message : xce_strerror(rc)));
  if (last.job_id != 0) absl::StrAppend(&text, " (job ", last.job_id, ")");
  return {false, text, false};
}

Repl::Answer Repl::with_context(const std::function<Answer(xcecli_ctx_t)>& op) {
  const int rc = connect();
  if (rc < 0) return failed(rc);
  return op(ctx_);
}

Repl::Answer Repl::execute(const std::string& line) {
  const auto split = split_words(line);
  if (!split.ok()) return invalid(std::string(split.status().message()));
  const Words& words = *split;
  if (words.empty()) return {true, "", false};
  const std::string& command = words[0];
  if (command == "set") return set(words);
  if (command == "hello") return hello();
  if (command == "joblist") return joblist(words);
  if (command == "jobinfo") return jobinfo(words);
  if (command == "jobsub") return jobsub(words);
  if (command == "jobctrl") return jobctrl(words);
  if (command == "workerlist") return workerlist();
  if (command == "queuelist") return queuelist();
  if (command == "clusterconf") return cluster(false);
  if (command == "clusterstatus") return cluster(true);
  if (command == "stats") return stats();
  if (command == "help") return {true, kHelp, false};
  if (command == "quit" || command == "exit") return {true, "ok", true};
  return invalid(absl::StrCat("no command '", command, "'; try help"));
}

Repl::Answer Repl::set(const Words& words) {
  if (words.size() == 3 && words[1] == "masters") {
    xce_cluster_config_t cluster{};
    char why[512] = "";
    if (xce_parse_peers(words[2].c_str(), &cluster, why, sizeof(why)) != 0 ||
        xce_cluster_config_validate(&cluster, why, sizeof(why)) != 0) {
      return invalid(why);
    }
    disconnect();
    masters_ = words[2];
    bad_masters_.clear();
    return ok(absl::StrCat("masters=", cluster.candidates_count));
  }
  if (words.size() == 3 && words[1] == "timeout") {
    const auto ms = parse_number(words[2], 1, 1000000000);
    if (!ms.ok()) return invalid(std::string(ms.status().message()));
    timeout_ms_ = static_cast<int>(*ms);
    if (ctx_ != nullptr) xcecli_set_deadline(ctx_, timeout_ms_);
    return ok(absl::StrCat("timeout=", timeout_ms_));
  }
  return invalid("set masters HOST:PORT,... or set timeout MS");
}

Repl::Answer Repl::hello() {
  return with_context([&](xcecli_ctx_t ctx) {
    xce_hello_t reply{};
    const int rc = xcecli_hello(ctx, &reply);
    if (rc < 0) return failed(rc);
    char master[XCE_MAXHOSTNAME_LEN + 8] = "";
    xcecli_current_master(ctx, master, sizeof(master));
    return ok(absl::StrCat("node=", reply.node_id, " master=", master, " term=", reply.term,
                           " applied=", reply.applied,
                           " version=", reply.version == nullptr ? "" : reply.version));
  });
}

Repl::Answer Repl::joblist(const Words& words) {
  xce_job_filter_t filter{};
  if (words.size() > 1) {
    const auto states = parse_states(words[1]);
    if (!states.ok()) return invalid(std::string(states.status().message()));
    filter.states = *states;
  }
  return with_context([&](xcecli_ctx_t ctx) {
    std::string list;
    size_t shown = 0;
    uint64_t total = 0;
    do {
      xce_job_page_t* raw = nullptr;
      const int rc = xcecli_joblist(ctx, &filter, &raw);
      if (rc < 0) return failed(rc);
      const std::unique_ptr<xce_job_page_t, decltype(&xce_free_job_page)> page(raw,
                                                                               &xce_free_job_page);
      total += page->njobs;
      for (size_t i = 0; i < page->njobs && shown < kShown; ++i, ++shown) {
        absl::StrAppend(&list, " ", id_of(page->jobs[i]), ":", state_word(page->jobs[i].state));
      }
      filter.after_id = page->next_after_id;
    } while (filter.after_id != 0);
    return ok(absl::StrCat("jobs=", total, list, total > shown ? " ..." : ""));
  });
}

Repl::Answer Repl::jobinfo(const Words& words) {
  if (words.size() != 2) return invalid("jobinfo ID");
  const auto ref = parse_job_ref(words[1]);
  if (!ref.ok() || ref->indices.has_value()) return invalid("jobinfo takes a number");
  return with_context([&](xcecli_ctx_t ctx) {
    xce_job_page_t* raw = nullptr;
    const int rc = xcecli_jobinfo(ctx, ref->id, &raw);
    if (rc < 0) return failed(rc);
    const std::unique_ptr<xce_job_page_t, decltype(&xce_free_job_page)> page(raw,
                                                                             &xce_free_job_page);
    if (page->njobs == 0) return failed(-E_XCE_NOENT);
    return ok(job_words(page->jobs[0]));
  });
}

Repl::Answer Repl::jobsub(const Words& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end() || dashes + 1 == words.end() || dashes - words.begin() > 2) {
    return invalid("jobsub [NAME] -- COMMAND...");
  }
  const std::string name = dashes - words.begin() == 2 ? words[1] : *(dashes + 1);
  std::vector<const char*> args;
  for (auto it = dashes + 1; it != words.end(); ++it) args.push_back(it->c_str());
  char dir[4096] = "/";
  if (::getcwd(dir, sizeof(dir)) == nullptr) dir[1] = '\0';
  xce_job_spec_t spec{};
  xce_job_spec_init(&spec);
  spec.name = name.c_str();
  spec.args = args.data();
  spec.nargs = args.size();
  spec.work_dir = dir;
  spec.cpus = 1;
  spec.nodes = 1;
  return with_context([&](xcecli_ctx_t ctx) {
    xce_submitted_t submitted{};
    const int rc = xcecli_jobsub(ctx, &spec, &submitted);
    if (rc < 0) return failed(rc);
    return ok(absl::StrCat("job=", submitted.job_id, " count=", submitted.count,
                           submitted.existing ? " existing" : ""));
  });
}

Repl::Answer Repl::jobctrl(const Words& words) {
  xce_jobctrl_action_t action;
  if (words.size() < 3 || !parse_action(words[1], &action)) {
    return invalid("jobctrl kill|suspend|resume|hold|release|requeue ID...");
  }
  std::vector<uint64_t> ids;
  for (size_t i = 2; i < words.size(); ++i) {
    const auto ref = parse_job_ref(words[i]);
    if (!ref.ok() || ref->indices.has_value())
      return invalid(absl::StrCat("'", words[i], "' is no number"));
    ids.push_back(ref->id);
  }
  return with_context([&](xcecli_ctx_t ctx) {
    const int rc = xcecli_jobctrl(ctx, ids.data(), ids.size(), action, 0, false);
    if (rc < 0) return failed(rc);
    return ok(absl::StrCat("changed=", rc));
  });
}

Repl::Answer Repl::workerlist() {
  return with_context([&](xcecli_ctx_t ctx) {
    xce_host_t* hosts = nullptr;
    size_t n = 0;
    const int rc = xcecli_workerlist(ctx, &hosts, &n);
    if (rc < 0) return failed(rc);
    std::string out = absl::StrCat("workers=", n);
    for (size_t i = 0; i < std::min(n, kShown); ++i) {
      absl::StrAppend(&out, " ", hosts[i].attrs.name, ":", host_state_word(hosts[i].state), ":",
                      hosts[i].used_cpus, "/", hosts[i].attrs.cpus);
    }
    xce_free_hosts(hosts, n);
    return ok(out);
  });
}

Repl::Answer Repl::queuelist() {
  return with_context([&](xcecli_ctx_t ctx) {
    xce_queue_t* queues = nullptr;
    size_t n = 0;
    const int rc = xcecli_queuelist(ctx, &queues, &n);
    if (rc < 0) return failed(rc);
    std::string out = absl::StrCat("queues=", n);
    for (size_t i = 0; i < std::min(n, kShown); ++i) {
      absl::StrAppend(&out, " ", queues[i].name, ":pending=", queues[i].pending,
                      ",running=", queues[i].running);
    }
    xce_free_queues(queues, n);
    return ok(out);
  });
}

Repl::Answer Repl::cluster(bool status) {
  return with_context([&](xcecli_ctx_t ctx) {
    xce_cluster_status_t* raw = nullptr;
    const int rc = status ? xcecli_clusterstatus(ctx, &raw) : xcecli_clusterconf(ctx, &raw);
    if (rc < 0) return failed(rc);
    const std::unique_ptr<xce_cluster_status_t, decltype(&xce_free_cluster_status)> reply(
        raw, &xce_free_cluster_status);
    std::string out;
    if (status) {
      absl::StrAppend(&out, "node=", reply->node_id, " role=", reply->role,
                      " leader=", reply->leader_id, " term=", reply->term,
                      " commit=", reply->commit, " applied=", reply->applied,
                      " pending=", reply->jobs_pending, " running=", reply->jobs_running,
                      " finished=", reply->jobs_finished, " scheduler=", reply->scheduler);
    } else {
      absl::StrAppend(&out, "heartbeat_ms=", reply->heartbeat_ms,
                      " election_timeout_ms=", reply->election_timeout_ms);
    }
    for (size_t i = 0; i < reply->nnodes; ++i) {
      const xce_node_t& node = reply->nodes[i];
      absl::StrAppend(&out, " ", node.id, "=", node.host, ":", node.port);
      if (status) absl::StrAppend(&out, "/", node.role);
    }
    return ok(out);
  });
}

Repl::Answer Repl::stats() {
  return with_context([&](xcecli_ctx_t ctx) {
    char text[8192] = "";
    const int rc = xcecli_stats_json(ctx, text, sizeof(text));
    if (rc < 0) return failed(rc);
    std::string line = text;
    std::replace(line.begin(), line.end(), '\n', ' ');
    return ok(line);
  });
}

}  // namespace xce::cli
