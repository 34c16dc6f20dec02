#include "xce/cluster.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace {

struct Refusal {
  const char* text;
  std::vector<const char*> named;  // all of these are in the message
};

TEST(ParsePeers, RefusesWithTheEntryNamed) {
  const Refusal cases[] = {
      {"", {"empty"}},
      {"   ", {"empty"}},
      {"a:1,,b:2", {"candidate 2", "empty"}},
      {"a:1,", {"candidate 2", "empty"}},
      {"a:1,b", {"candidate 2", "'b'", "port"}},
      {"a:0", {"candidate 1", "'a:0'", "1..65535"}},
      {"a:65536", {"'a:65536'", "1..65535"}},
      {"a:-1", {"'a:-1'"}},
      {"a:9x", {"'a:9x'"}},
      {"a:", {"'a:'"}},
      {":9990", {"':9990'", "host"}},
      {"=a:9990", {"name"}},
      {"::1:9990", {"brackets"}},
      {"[::1:9990", {"]"}},
      {"[::1]", {"port"}},
      {"[::1]9990", {"port"}},
      {"a b:1", {"blank"}},
      {"a:1,b:2,a:1", {"candidate 3", "candidate 1", "repeats"}},
      {"x=a:1,x=b:2", {"candidate 2", "name"}},
      {"a:1,b:2,c:3,d:4,e:5", {"candidate 5", "too many"}},
  };
  for (const Refusal& c : cases) {
    xce_cluster_config_t config;
    char err[256] = "";
    EXPECT_EQ(xce_parse_peers(c.text, &config, err, sizeof err), -EINVAL) << c.text;
    for (const char* word : c.named)
      EXPECT_NE(std::strstr(err, word), nullptr) << c.text << ": " << err;
    EXPECT_EQ(xce_parse_peers(c.text, &config, nullptr, 0), -EINVAL) << c.text;
  }
}

TEST(ParsePeers, KeepsOrderNamesAndAddresses) {
  xce_cluster_config_t config;
  char err[256];
  ASSERT_EQ(xce_parse_peers("3=c.example:9990, 1=10.0.0.1:1,[fe80::1]:65535,d:9990", &config, err,
                            sizeof err),
            0)
      << err;
  ASSERT_EQ(config.candidates_count, 4);
  EXPECT_STREQ(config.candidates[0].name, "3");
  EXPECT_STREQ(config.candidates[0].host, "c.example");
  EXPECT_EQ(config.candidates[0].port, 9990);
  EXPECT_STREQ(config.candidates[1].host, "10.0.0.1");
  EXPECT_EQ(config.candidates[1].port, 1);
  EXPECT_STREQ(config.candidates[2].host, "fe80::1");
  EXPECT_STREQ(config.candidates[2].name, "");
  EXPECT_EQ(config.candidates[2].port, 65535);
  EXPECT_STREQ(config.candidates[3].host, "d");
}

TEST(ParsePeers, OneHostMayServeOnTwoPorts) {
  xce_cluster_config_t config;
  EXPECT_EQ(xce_parse_peers("localhost:1,localhost:2", &config, nullptr, 0), 0);
  EXPECT_EQ(config.candidates_count, 2);
}

TEST(Validate, CountsOneToFour) {
  xce_cluster_config_t config;
  std::memset(&config, 0, sizeof config);
  for (int n = -1; n <= MAX_HA_CANDIDATES + 1; ++n) {
    config.candidates_count = n;
    for (int i = 0; i < MAX_HA_CANDIDATES; ++i) {
      std::strcpy(config.candidates[i].host, "h");
      config.candidates[i].port = static_cast<uint16_t>(i + 1);
    }
    char err[128] = "";
    EXPECT_EQ(xce_cluster_config_validate(&config, err, sizeof err),
              n >= 1 && n <= MAX_HA_CANDIDATES ? 0 : -EINVAL)
        << n;
  }
  EXPECT_EQ(xce_cluster_config_validate(nullptr, nullptr, 0), -EINVAL);
}

TEST(ToClientConfig, CopiesInOrderAndLeavesTheRest) {
  xce_cluster_config_t config;
  ASSERT_EQ(xce_parse_peers("b:2,a:1", &config, nullptr, 0), 0);
  xce_client_config_t client;
  std::memset(&client, 0, sizeof client);
  client.role = HostRole_worker;
  client.call_deadline_ms = 77;
  client.nmasters = 4;
  std::strcpy(client.masters[3], "old");
  ASSERT_EQ(xce_cluster_config_to_client_config(&config, &client), 0);
  EXPECT_EQ(client.nmasters, 2);
  EXPECT_STREQ(client.masters[0], "b");
  EXPECT_EQ(client.master_ports[0], 2);
  EXPECT_STREQ(client.masters[1], "a");
  EXPECT_STREQ(client.masters[3], "");
  EXPECT_EQ(client.role, HostRole_worker);
  EXPECT_EQ(client.call_deadline_ms, 77);
  EXPECT_EQ(xce_cluster_config_to_client_config(nullptr, &client), -EINVAL);
  EXPECT_EQ(xce_cluster_config_to_client_config(&config, nullptr), -EINVAL);
}

}  // namespace
