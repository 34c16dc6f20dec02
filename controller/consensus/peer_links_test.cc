// The rules of the connections between controllers, without sockets: what is done and what is told,
// call by call.
#include "controller/consensus/peer_links.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace xce::consensus {
namespace {

using End = PeerLinks::End;
using LinkId = PeerLinks::LinkId;

struct World final : PeerLinks::Io, Transport::Events {
  // ---- PeerLinks::Io
  uint64_t now_ms() override { return now; }
  uint64_t random() override { return 0; }
  void dial(LinkId link, uint64_t peer) override { dialled[peer] = link; }
  std::string not_node(LinkId, uint64_t) override { return impostor; }
  bool can_write(LinkId) const override { return !full; }
  void write(LinkId link, std::string) override { written.push_back(link); }
  void close(LinkId link) override { closed.insert(link); }
  void start_pause(uint64_t peer, uint64_t ms) override { pauses[peer] = ms; }
  void stop_pause(uint64_t peer) override { pauses.erase(peer); }
  void refused(uint64_t, const std::string& why) override { refusals.push_back(why); }
  void turned_away(const Hello&, const std::string& why) override { complaints.push_back(why); }
  void complain(const std::string& what) override { complaints.push_back(what); }
  // ---- Transport::Events
  Hello own_hello() override { return Hello{}; }
  Greeting check_hello(const Hello&, bool) override {
    checked++;
    return greeting;
  }
  void on_message(uint64_t, PeerMessage&) override {}
  void on_connected(uint64_t peer) override { connected.push_back(peer); }
  void on_gone(uint64_t peer) override { gone.push_back(peer); }

  uint64_t now = 1000;
  std::string impostor;
  Greeting greeting;
  bool full = false;
  int checked = 0;
  std::map<uint64_t, LinkId> dialled;
  std::map<uint64_t, uint64_t> pauses;
  std::set<LinkId> closed;
  std::vector<LinkId> written;
  std::vector<uint64_t> connected, gone;
  std::vector<std::string> refusals, complaints;
};

std::string hello_of(uint64_t node, uint64_t boot, bool serving = true) {
  Hello hello;
  hello.node = node;
  hello.boot = boot;
  hello.serving = serving;
  std::string bytes;
  append_hello_frame(hello, &bytes);
  return bytes;
}

class PeerLinksTest : public ::testing::Test {
 protected:
  PeerLinksTest() { links.add_peer(2); }
  LinkId out() const { return world.dialled.at(2); }
  void connect_out(uint64_t boot) {
    links.up(out());
    links.received(out(), hello_of(2, boot));
  }
  LinkId connect_in(uint64_t boot) {
    const LinkId link = links.accepted();
    links.received(link, hello_of(2, boot));
    return link;
  }

  World world;
  PeerLinks links{&world, &world};
};

TEST_F(PeerLinksTest, SendsOnlyAfterBothHellos) {
  links.up(out());
  links.send(2, "early");
  EXPECT_EQ(world.written.size(), 1u);  // our hello
  links.received(out(), hello_of(2, 7));
  EXPECT_EQ(world.connected, std::vector<uint64_t>{2});
  links.send(2, "now");
  EXPECT_EQ(world.written.size(), 2u);
  world.full = true;
  links.send(2, "too much");
  EXPECT_EQ(world.written.size(), 2u);
}

TEST_F(PeerLinksTest, ALostLinkIsDialledAtOnceAndARefusedPortTellsThatItIsGone) {
  connect_out(7);
  const LinkId first = out();
  links.ended(first, End::kLost);
  EXPECT_NE(out(), first);
  EXPECT_TRUE(world.gone.empty());  // a lost connection is no dead process yet
  links.ended(out(), End::kRefused);
  EXPECT_EQ(world.gone, std::vector<uint64_t>{2});
  EXPECT_EQ(world.pauses.count(2), 1u);
}

TEST_F(PeerLinksTest, ARefusedPortTellsNothingWhileItIsConnectedToUs) {
  connect_out(7);
  connect_in(7);
  links.ended(out(), End::kLost);
  links.ended(out(), End::kRefused);  // a firewall between us, one way
  EXPECT_TRUE(world.gone.empty());
}

TEST_F(PeerLinksTest, WithoutADialledLinkTheEndOfTheirsIsASecondLook) {
  links.ended(out(), End::kLost);
  const LinkId before = out();
  const LinkId in = connect_in(7);
  EXPECT_NE(out(), before);  // it has just come up: no need to wait for the pause
  links.ended(out(), End::kLost);
  const LinkId last = out();
  links.ended(in, End::kLost);
  EXPECT_NE(out(), last);
}

TEST_F(PeerLinksTest, AnotherProcessOrOneThatStoppedServingTellsThatTheFirstIsGone) {
  connect_out(7);
  EXPECT_TRUE(world.gone.empty());
  connect_in(8);
  EXPECT_EQ(world.gone, std::vector<uint64_t>{2});
  const LinkId link = links.accepted();
  links.received(link, hello_of(2, 8, /*serving=*/false));
  EXPECT_EQ(world.gone.size(), 2u);
}

TEST_F(PeerLinksTest, PausesGrowToALimitAndARefusalMakesThemLong) {
  std::vector<uint64_t> pauses;
  for (int i = 0; i < 8; i++) {
    links.ended(out(), End::kLost);
    pauses.push_back(world.pauses.at(2));
    links.pause_over(2);
  }
  EXPECT_EQ(pauses, (std::vector<uint64_t>{2, 5, 10, 20, 40, 80, 100, 100}));
  world.greeting.refused = "another cluster";
  for (int i = 0; i < 2; i++) {
    links.received(out(), hello_of(2, 7));
    EXPECT_EQ(world.pauses.at(2), 1000u);
    links.pause_over(2);
  }
  EXPECT_EQ(world.refusals, std::vector<std::string>{"another cluster"});  // said once
}

TEST_F(PeerLinksTest, AnImpostorIsNotEvenAskedAbout) {
  world.impostor = "its certificate does not name node 2";
  const LinkId link = connect_in(7);
  EXPECT_EQ(world.checked, 0);
  EXPECT_EQ(world.closed.count(link), 1u);
  EXPECT_EQ(world.complaints.size(), 1u);
  connect_in(7);
  EXPECT_EQ(world.complaints.size(), 1u);
}

TEST_F(PeerLinksTest, NobodySaysAnythingBeforeHello) {
  const LinkId link = links.accepted();
  std::string ping;
  append_ping_frame(&ping);
  links.received(link, ping);
  EXPECT_EQ(world.closed.count(link), 1u);
  EXPECT_FALSE(links.has(link));
}

TEST_F(PeerLinksTest, AFloodOfStrangersPushesOutItsOldest) {
  std::vector<LinkId> strangers;
  for (int i = 0; i < 40; i++) strangers.push_back(links.accepted());
  EXPECT_EQ(world.closed, std::set<LinkId>(strangers.begin(), strangers.begin() + 8));
}

TEST_F(PeerLinksTest, SilenceHasALimit) {
  links.up(out());
  const LinkId first = out(), stranger = links.accepted();
  world.now += 1001;
  links.sweep();
  EXPECT_EQ(world.closed.count(first), 1u);
  EXPECT_EQ(world.closed.count(stranger), 0u);
  world.now += 4000;
  links.sweep();
  EXPECT_EQ(world.closed.count(stranger), 1u);
}

TEST_F(PeerLinksTest, AfterHangingUpNobodyIsDialled) {
  connect_out(7);
  const LinkId last = out();
  links.hang_up();
  EXPECT_EQ(world.closed.count(last), 1u);
  links.pause_over(2);
  EXPECT_EQ(out(), last);
  const LinkId in = connect_in(9);  // is told, and goes
  EXPECT_EQ(world.closed.count(in), 1u);
}

}  // namespace
}  // namespace xce::consensus
