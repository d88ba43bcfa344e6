#include "runtime/worker/find_head.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/head/announcer.h"
#include "transport/addresses.h"

namespace motley::runtime {
namespace {

using discovery::FoundHead;

FoundHead found_head(const std::string& name, std::uint8_t key) {
  FoundHead out{.name = name, .port = 7117, .addresses = {"10.77.0.10"}};
  out.key.fill(key);
  return out;
}

TEST(FindHead, AHeadIsNamedByItsNameOrByThatAndItsKey) {
  const std::vector<FoundHead> all{found_head("desktop", 0xAA), found_head("desktop", 0xAB),
                                   found_head("laptop", 0xCC)};
  EXPECT_EQ(name_among(all[0], all), "desktop/aaaaaaaa");
  EXPECT_EQ(name_among(all[2], all), "laptop");
  EXPECT_EQ(heads_named("desktop", all).size(), 2U);
  EXPECT_EQ(heads_named("desktop/ab", all), std::vector{all[1]});
  EXPECT_EQ(heads_named(name_among(all[0], all), all), std::vector{all[0]});
  EXPECT_EQ(heads_named("laptop", all), std::vector{all[2]});
  for (const char* word : {"desk", "desktop/", "desktop/ad", "lap", "", "other"})
    EXPECT_TRUE(heads_named(word, all).empty());
}

TEST(FindHead, WhoDoesNotListenIsNamed) {
  FoundHead nobody = found_head("desktop", 0xAA);
  nobody.addresses = {"127.0.0.1"};
  nobody.port = 1;  // of the system alone, and nothing is there
  const auto token = pair_with(nobody, "123456", "laptop", transport::make_identity());
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ErrorCode::network);
}

TEST(FindHead, AHeadThatAnnouncesItselfIsFound) {
  if (transport::local_networks().empty()) GTEST_SKIP() << "this machine is in no network";
  transport::Digest key{};
  transport::random_bytes(key);
  auto announcer = Announcer::open("desktop", key, 7117);
  ASSERT_TRUE(announcer) << announcer.error().message;
  const auto is_it = [&key](const FoundHead& each) { return each.key == key; };
  StopSource stop;
  const auto heads =
      find_heads(std::chrono::seconds(60), [&](const auto& found) { return std::ranges::any_of(found, is_it); }, stop);
  ASSERT_TRUE(heads) << heads.error().message;
  const auto it = std::ranges::find_if(*heads, is_it);
  ASSERT_NE(it, heads->end());
  EXPECT_EQ(it->name, "desktop");
  EXPECT_EQ(it->port, 7117);
  EXPECT_EQ(std::ranges::count(transport::local_addresses(), it->addresses.front()), 1);
}

TEST(FindHead, WhoIsInterruptedStopsLooking) {
  if (transport::local_networks().empty()) GTEST_SKIP() << "this machine is in no network";
  StopSource stop;
  stop.request();
  const auto heads = find_heads(std::chrono::hours(1), [](const auto&) { return false; }, stop);
  ASSERT_FALSE(heads);
  EXPECT_EQ(heads.error().code, ErrorCode::interrupted);
}

}  // namespace
}  // namespace motley::runtime
