// Equal bodies and environments become one.
#include "controller/state/intern.h"

#include <gtest/gtest.h>

#include <string>

namespace xce::state {
namespace {

std::shared_ptr<const JobBody> body(const std::string& arg, const std::string& env) {
  auto body = std::make_shared<JobBody>();
  body->args = {"/bin/echo", arg};
  if (!env.empty()) body->env = {env};
  return body;
}

TEST(Interner, EqualBodiesBecomeOne) {
  Interner interner;
  const auto first = interner.share(body("a", "X=1"));
  EXPECT_EQ(interner.share(body("a", "X=1")), first);
  EXPECT_NE(interner.share(body("b", "X=1")), first);
  EXPECT_NE(interner.share(body("a", "X=2")), first);
  EXPECT_EQ(interner.share(first), first);
}

TEST(Interner, TextsAreNotMistakenForOneAnother) {
  Interner interner;
  auto one = std::make_shared<JobBody>();
  one->args = {"ab", "c"};
  auto other = std::make_shared<JobBody>();
  other->args = {"a", "bc"};
  auto script = std::make_shared<JobBody>();
  script->script = "abc";
  EXPECT_EQ(interner.share(one), one);
  EXPECT_EQ(interner.share(other), other);
  EXPECT_EQ(interner.share(script), script);
}

TEST(Interner, DifferentBodiesShareAnEqualEnvironment) {
  Interner interner;
  const auto first = interner.share(body("a", "X=1"));
  const auto second = interner.share(body("b", "X=1"));
  EXPECT_EQ(second->env.identity(), first->env.identity());
  EXPECT_EQ(second->args[1], "b");
  EXPECT_EQ(interner.share(body("c", ""))->env.identity(), nullptr);
}

TEST(Recent, IsBoundedInNumberAndBytes) {
  Recent<std::string> few(3, 1000);
  for (uint64_t i = 1; i <= 5; ++i) few.put(i, std::to_string(i), 10);
  EXPECT_EQ(few.size(), 3u);
  EXPECT_EQ(few.find(2), nullptr);
  ASSERT_NE(few.find(3), nullptr);
  EXPECT_EQ(*few.find(3), "3");
  Recent<std::string> small(100, 100);
  for (uint64_t i = 1; i <= 10; ++i) small.put(i, "v", 20);
  EXPECT_EQ(small.size(), 5u);
  small.put(11, "large", 26);  // would drive out too many
  EXPECT_EQ(small.find(11), nullptr);
  small.put(10, "other", 20);  // what is known stays
  EXPECT_EQ(*small.find(10), "v");
}

}  // namespace
}  // namespace xce::state
