#include "controller/state/intern.h"

#include <string>
#include <vector>

namespace xce::state {
namespace {

class Hash {
 public:
  void add(const std::string& text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    value_ = (value_ ^ text.size()) * 0x9e3779b97f4a7c15u;
    bytes_ += text.size() + 48;
  }
  void add(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) add(text);
    value_ = (value_ ^ texts.size()) * 0x9e3779b97f4a7c15u;
  }
  uint64_t value() const { return value_ ^ value_ >> 29; }
  size_t bytes() const { return bytes_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
  size_t bytes_ = 0;
};

}  // namespace

std::shared_ptr<const JobBody> Interner::share(std::shared_ptr<const JobBody> body) {
  Hash env;
  env.add(body->env.list());
  Hash all = env;
  all.add(body->script);
  all.add(body->args);
  if (const auto* known = bodies_.find(all.value())) {
    const JobBody& has = **known;
    if (has.script == body->script && has.args == body->args && has.env == body->env) return *known;
  }
  if (!body->env.empty()) {
    const SharedTexts* const known = envs_.find(env.value());
    if (known == nullptr) {
      envs_.put(env.value(), body->env, env.bytes());
    } else if (*known == body->env && known->identity() != body->env.identity()) {
      auto lean = std::make_shared<JobBody>();
      lean->script = body->script;
      lean->args = body->args;
      lean->env = *known;
      body = std::move(lean);
    }
  }
  bodies_.put(all.value(), body, all.bytes());
  return body;
}

}  // namespace xce::state
