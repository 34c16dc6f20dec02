#include "libxce/client/testing/failover_case.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "xce/errnox.h"

namespace xce::client {
namespace {

int master_of(const std::string& text) {
  if (text == "any") return kAny;
  if (text.size() != 1 || text[0] < 'a' || text[0] > 'd')
    throw std::runtime_error("'" + text + "' is no master: a, b, c, d or any");
  return text[0] - 'a';
}

// "redirect c", "ok term 5", "nomaster until 3000", "not_ready maybe".
void read_words(const std::string& text, CaseStep* step) {
  std::istringstream in(text);
  in >> step->word;
  for (std::string w; in >> w;) {
    if (w == "term") {
      in >> step->term;
    } else if (w == "until") {
      in >> step->until_ms;
    } else if (w == "maybe") {
      step->maybe = true;
    } else {
      step->redirect = master_of(w);
    }
    if (in.fail()) throw std::runtime_error("cannot read '" + text + "'");
  }
}

CaseStep read_step(const YAML::Node& node) {
  if (!node.IsMap() || node.size() != 1) throw std::runtime_error("a step has one key");
  const std::string key = node.begin()->first.as<std::string>();
  const std::string text = node.begin()->second.as<std::string>();
  CaseStep step;
  if (key == "call") {
    step.kind = CaseStep::Kind::kCall;
    step.word = text;
    if (text != "start" && text != "submit" && text != "list")
      throw std::runtime_error("there is no call '" + text + "'");
    return step;
  }
  if (key == "lost") {
    step.kind = CaseStep::Kind::kLost;
    step.master = master_of(text);
    return step;
  }
  read_words(text, &step);
  if (key == "result")
    step.kind = CaseStep::Kind::kResult;
  else if (key == "hook")
    step.kind = CaseStep::Kind::kHook;
  else
    step.master = master_of(key);
  static const std::set<std::string> transport = {"refused", "reset", "silent", "commit_reset"};
  if (step.kind == CaseStep::Kind::kMaster && transport.count(step.word) == 0 &&
      status_of_word(step.word) < 0)
    throw std::runtime_error("a master cannot do '" + step.word + "'");
  return step;
}

Range read_range(const YAML::Node& node) { return {node[0].as<int64_t>(), node[1].as<int64_t>()}; }

void read_expect(const YAML::Node& node, FailoverCase* c) {
  for (const auto& item : node) {
    const std::string key = item.first.as<std::string>();
    const YAML::Node& value = item.second;
    if (key == "endpoints") {
      for (const auto& m : value) c->endpoints.push_back(master_of(m.as<std::string>()));
    } else if (key == "sleeps_ms") {
      for (const auto& r : value) c->sleeps.push_back(read_range(r));
    } else if (key == "slept_ms") {
      c->slept.push_back(read_range(value));
    } else if (key == "elapsed_ms") {
      c->elapsed.push_back(read_range(value));
    } else if (key == "resent") {
      for (const auto& r : value) c->resent.push_back(r.as<bool>() ? 1 : 0);
    } else if (key == "applied") {
      c->applied.push_back(value.as<int>());
    } else if (key == "hooks") {
      c->hooks.push_back(value.as<int>());
    } else if (key == "generation") {
      c->generation.push_back(value.as<int>());
    } else if (key == "stats") {
      for (const auto& s : value) c->stats[s.first.as<std::string>()] = s.second.as<int64_t>();
    } else {
      throw std::runtime_error("nothing is expected of '" + key + "'");
    }
  }
}

FailoverCase read_case(const YAML::Node& node) {
  FailoverCase c;
  for (const auto& item : node) {
    const std::string key = item.first.as<std::string>();
    const YAML::Node& value = item.second;
    if (key == "name")
      c.name = value.as<std::string>();
    else if (key == "covers")
      c.covers = value.as<std::vector<std::string>>();
    else if (key == "masters")
      c.masters = value.as<int>();
    else if (key == "seed")
      c.seed = value.as<uint32_t>();
    else if (key == "clock_ms")
      c.clock_ms = value.as<int64_t>();
    else if (key == "deadline_ms")
      c.deadline_ms = value.as<int>();
    else if (key == "max_retries")
      c.max_retries = value.as<int>();
    else if (key == "initial_delay_ms")
      c.initial_delay_ms = value.as<int>();
    else if (key == "max_delay_ms")
      c.max_delay_ms = value.as<int>();
    else if (key == "decision_only")
      c.decision_only = value.as<bool>();
    else if (key == "expect")
      read_expect(value, &c);
    else if (key == "steps")
      for (const auto& s : value) c.steps.push_back(read_step(s));
    else
      throw std::runtime_error("a case has no '" + key + "'");
  }
  if (c.name.empty() || c.steps.empty()) throw std::runtime_error("a case has a name and steps");
  return c;
}

}  // namespace

int status_of_word(const std::string& word) {
  static const std::map<std::string, int> words = {
      {"ok", 0},
      {"redirect", E_XCE_REDIRECT},
      {"nomaster", E_XCE_NOMASTER},
      {"standby", E_XCE_STANDBY},
      {"not_ready", E_XCE_NOT_READY},
      {"unknown", E_XCE_OUTCOME_UNKNOWN},
      {"dup", E_XCE_DUP_JOB},
      {"auth", E_XCE_AUTH},
      {"perm", E_XCE_PERM},
      {"invalid", E_XCE_INVALID},
      {"noent", E_XCE_NOENT},
      {"stale", E_XCE_STALE},
      {"busy", E_XCE_BUSY},
  };
  const auto found = words.find(word);
  return found == words.end() ? -1 : found->second;
}

std::vector<FailoverCase> all_failover_cases() {
  const std::string dir = std::string(std::getenv("TEST_SRCDIR")) + "/" +
                          std::getenv("TEST_WORKSPACE") + "/libxce/client/testdata/failover";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<FailoverCase> cases;
  std::set<std::string> names;
  for (const std::string& file : files) {
    size_t number = 0;
    try {
      for (const YAML::Node& node : YAML::LoadAllFromFile(file)) {
        ++number;
        cases.push_back(read_case(node));
        if (!names.insert(test_name(cases.back())).second)
          throw std::runtime_error("another case has this name");
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s, case %zu: %s\n", file.c_str(), number, e.what());
      std::abort();
    }
  }
  return cases;
}

std::string test_name(const FailoverCase& c) {
  std::string out;
  for (const char ch : c.name) {
    if (std::isalnum(static_cast<unsigned char>(ch)) != 0)
      out += ch;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

}  // namespace xce::client
