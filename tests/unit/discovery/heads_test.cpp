#include "discovery/heads.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::discovery {
namespace {

using std::chrono::milliseconds;
constexpr std::array<std::uint8_t, 4> kIp{10, 77, 0, 10};
constexpr std::uint16_t kElsewhere = 40000;

std::array<std::uint8_t, 32> key(std::uint8_t byte) {
  std::array<std::uint8_t, 32> out{};
  out.fill(byte);
  return out;
}

class Announced : public testing::Test {
 protected:
  Announced() : announcement_("desktop", key(0xAB), 7117), asked_(*parse(question())) {}
  std::optional<Announcement::Reply> ask(std::uint16_t port, Time now, std::size_t network = 0) {
    return announcement_.answer(asked_, network, kIp, port, now);
  }
  static std::vector<FoundHead> heads(const std::vector<std::byte>& bytes) {
    const std::optional<Message> message = parse(bytes);
    EXPECT_TRUE(message);
    return message ? heads_in(*message, "10.77.0.99") : std::vector<FoundHead>();
  }
  Announcement announcement_;
  Message asked_;
  const FoundHead expected_{"desktop", key(0xAB), 7117, {"10.77.0.99", "10.77.0.10"}};
};

TEST_F(Announced, AHeadIsFoundByItsAnswer) {
  const auto reply = ask(kPort, Time{});
  ASSERT_TRUE(reply && reply->to_all);
  EXPECT_EQ(heads(reply->bytes), std::vector{expected_});
  EXPECT_EQ(heads(announcement_.unasked(kIp, true)), std::vector{expected_});
  EXPECT_TRUE(heads(announcement_.unasked(kIp, false)).empty()) << "it says goodbye";
}

TEST_F(Announced, WhoAsksFromAnotherPortGetsAnAnswerOfHisOwn) {
  asked_.id = 77;
  const auto reply = ask(kElsewhere, Time{});
  ASSERT_TRUE(reply && !reply->to_all);
  EXPECT_EQ(heads(reply->bytes), std::vector{expected_});
  const auto message = parse(reply->bytes);
  EXPECT_EQ(message->id, 77);
  EXPECT_EQ(message->questions, asked_.questions);
  EXPECT_TRUE(std::ranges::none_of(message->additional, &Record::unique));
  EXPECT_TRUE(std::ranges::all_of(message->answers, [](const Record& each) { return each.seconds <= 10; }));
}

TEST_F(Announced, AllOfANetworkAreToldOnceASecond) {
  const Time start{};
  EXPECT_TRUE(ask(kPort, start));
  EXPECT_FALSE(ask(kPort, start + milliseconds(999)));
  EXPECT_TRUE(ask(kPort, start, 1)) << "another network";
  EXPECT_TRUE(ask(kPort, start + milliseconds(1000)));
}

TEST_F(Announced, SomeAreAnsweredASecondWhoeverAsks) {
  int answered = 0;
  for (int i = 0; i < 1000; ++i) answered += ask(kElsewhere, Time{}) ? 1 : 0;
  EXPECT_EQ(answered, 20);
  EXPECT_TRUE(ask(kElsewhere, Time{} + milliseconds(1000)));
}

TEST_F(Announced, OtherQuestionsAreNotAnswered) {
  for (const Question& other : {Question{{"_http", "_tcp", "local"}, Kind::ptr},
                                Question{{"_motley", "_tcp", "local"}, Kind::srv}, Question{{"local"}, Kind::any}}) {
    asked_.questions = {other};
    EXPECT_FALSE(ask(kPort, Time{}));
  }
  asked_.questions = {{{"_MOTLEY", "_tcp", "Local"}, Kind::any}};
  EXPECT_TRUE(ask(kPort, Time{}));
  asked_.response = true;
  EXPECT_FALSE(ask(kElsewhere, Time{})) << "an answer of somebody else";
}

TEST_F(Announced, WhoKnowsUsAlreadyIsNotTold) {
  const auto reply = ask(kPort, Time{});
  const auto said = parse(reply->bytes);
  asked_.answers = said->answers;
  EXPECT_FALSE(ask(kElsewhere, Time{}));
  asked_.answers.front().seconds = 30;
  EXPECT_TRUE(ask(kElsewhere, Time{})) << "it will have forgotten us soon";
}

TEST_F(Announced, NothingOfAStrangersAnswerReachesAScreenAsItIs) {
  const auto said = *parse(announcement_.unasked(kIp, true));
  const auto changed = [&](const std::vector<std::string>& texts) {
    Message message = said;
    for (Record& record : message.additional)
      if (record.kind == Kind::txt) record.texts = texts;
    return heads_in(message, "10.77.0.99");
  };
  const std::string good_key = "key=" + std::string(64, 'a');
  ASSERT_EQ(changed({"v=1", "name=\x1B[2J\xFF\n", good_key}).size(), 1U);
  EXPECT_EQ(changed({"v=1", "name=\x1B[2J\xFF\n", good_key}).front().name, "?[2J? ");
  EXPECT_EQ(changed({"v=1", "name=" + std::string(250, 'x'), good_key}).front().name.size(), 63 + 3U);
  EXPECT_TRUE(changed({"v=2", "name=x", good_key}).empty());
  EXPECT_TRUE(changed({"v=1", "name=", good_key}).empty());
  EXPECT_TRUE(changed({"v=1", "name=x", "key=aa"}).empty());
  EXPECT_TRUE(changed({"v=1", "name=x"}).empty());
  EXPECT_TRUE(changed({}).empty());
}

TEST_F(Announced, AnAnswerWithoutAPlaceIsNone) {
  Message message = *parse(announcement_.unasked(kIp, true));
  for (Record& record : message.additional) record.port = 0;
  EXPECT_TRUE(heads_in(message, "10.77.0.99").empty());
  message.additional.clear();
  EXPECT_TRUE(heads_in(message, "10.77.0.99").empty());
}

TEST_F(Announced, ALongOrOddNameStillMakesAMessage) {
  for (const std::string& name : {std::string(300, 'n'), std::string("\xFF\x00\x01", 3), std::string(), [] {
                                    std::string wide;
                                    for (int i = 0; i < 100; ++i) wide += "\xE2\x84\xA2";
                                    return wide;
                                  }()}) {
    const Announcement announcement(name, key(1), 1);
    EXPECT_TRUE(parse(announcement.unasked(kIp, true))) << name;
  }
}

TEST(FoundHeads, AreTheSameByTheirKey) {
  std::vector<FoundHead> found;
  EXPECT_TRUE(add_heads(found, {{"desktop", key(1), 7117, {"10.0.0.1"}}}));
  EXPECT_FALSE(add_heads(found, {{"desktop", key(1), 7117, {"10.0.0.1", "192.168.0.1"}}}));
  EXPECT_TRUE(add_heads(found, {{"desktop", key(2), 7117, {"10.0.0.1"}}})) << "another one of that name";
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].addresses, (std::vector<std::string>{"10.0.0.1", "192.168.0.1"}));
}

TEST(FoundHeads, AreBounded) {
  std::vector<FoundHead> found;
  for (int i = 0; i < 200; ++i) add_heads(found, {{"x", key(static_cast<std::uint8_t>(i)), 1, {"10.0.0.1"}}});
  EXPECT_EQ(found.size(), kHeadsMax);
  for (int i = 0; i < 200; ++i) add_heads(found, {{"x", key(0), 1, {"10.0.0." + std::to_string(i)}}});
  EXPECT_EQ(found[0].addresses.size(), kAddressesMax);
}

}  // namespace
}  // namespace motley::discovery
