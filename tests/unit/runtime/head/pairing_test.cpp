#include "runtime/head/pairing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fleet/token.h"
#include "runtime/head/head_listener.h"
#include "runtime/head/invitations.h"
#include "runtime/head/train.h"
#include "runtime/pairing.h"
#include "store/secret_file.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

class RunThatPairs : public testing::Test {
 protected:
  RunThatPairs() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    write_token(false);
  }
  ~RunThatPairs() override { fs::remove_all(directory_); }
  void write_token(bool plaintext) {
    fleet::JoinToken token;
    token.addresses = {"10.77.0.10"};
    token.port = 7117;
    token.plaintext = plaintext;
    ASSERT_TRUE(store::write_secret_file(directory_ / "token", fleet::to_text(token)).ok());
  }
  fs::path directory_ = fs::path(testing::TempDir()) / (std::string("run_that_pairs_") +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name() +
                                                        "_" + std::to_string(::getpid()));
};

TEST_F(RunThatPairs, HasNoCodeUntilThereIsOne) {
  Pairing pairing(directory_);
  pairing.look(unix_seconds());
  EXPECT_FALSE(pairing.code(unix_seconds()));
  const auto code = open_pairing(directory_);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(code->addresses, std::vector<std::string>{"10.77.0.10"});
  EXPECT_FALSE(pairing.code(unix_seconds()));
  pairing.look(unix_seconds());
  EXPECT_EQ(pairing.code(unix_seconds()), code->digits);
}

TEST(TypedAddresses, HaveThePortWhereItIsNotTheUsualOne) {
  fleet::JoinToken token;
  token.addresses = {"192.168.1.7", "fd00::7"};
  token.port = kDefaultPort;
  EXPECT_EQ(typed_addresses(token), (std::vector<std::string>{"192.168.1.7", "fd00::7"}));
  token.port = 7200;
  EXPECT_EQ(typed_addresses(token), (std::vector<std::string>{"192.168.1.7:7200", "[fd00::7]:7200"}));
}

TEST_F(RunThatPairs, ACodeIsGoodForTenMinutes) {
  const std::uint64_t before = unix_seconds();
  const auto code = open_pairing(directory_);
  Pairing pairing(directory_);
  pairing.look(unix_seconds());
  EXPECT_GE(code->until_unix_s, before + 600);
  EXPECT_TRUE(pairing.code(code->until_unix_s - 1));
  EXPECT_FALSE(pairing.code(code->until_unix_s));
}

TEST_F(RunThatPairs, ANewCodeReplacesTheOldOne) {
  const auto first = open_pairing(directory_), second = open_pairing(directory_);
  ASSERT_TRUE(first && second);
  Pairing pairing(directory_);
  pairing.look(unix_seconds());
  EXPECT_EQ(pairing.code(unix_seconds()), second->digits);
  fs::remove(directory_ / "pairing");
  pairing.look(unix_seconds());
  EXPECT_FALSE(pairing.code(unix_seconds()));
}

TEST_F(RunThatPairs, ACodeThatIsUsedOrGuessedDoesNotComeBack) {
  for (const bool used : {true, false}) {
    const auto first = open_pairing(directory_);
    const std::uint64_t now = unix_seconds();
    Pairing pairing(directory_);
    pairing.look(now);
    if (used) pairing.used(now);
    for (unsigned wrong = 1; !used && wrong <= kWrongCodesMax; ++wrong) EXPECT_EQ(pairing.wrong(now), wrong);
    pairing.look(now);
    EXPECT_FALSE(pairing.code(now));
    Pairing restarted(directory_);
    restarted.look(now);
    EXPECT_FALSE(restarted.code(now));
    const auto asked_for = open_pairing(directory_);
    pairing.look(now);
    EXPECT_EQ(pairing.code(now), asked_for->digits);
  }
}

TEST_F(RunThatPairs, TheNextCodeIsInTheFileToo) {
  ASSERT_TRUE(open_pairing(directory_));
  const std::uint64_t now = unix_seconds();
  Pairing pairing(directory_);
  pairing.look(now);
  const std::uint64_t number = pairing.number();
  EXPECT_FALSE(pairing.renew(now));
  pairing.used(now);
  const auto next = pairing.renew(now);
  ASSERT_TRUE(next);
  EXPECT_EQ(pairing.code(now), next->digits);
  EXPECT_EQ(next->until_unix_s, now + kCodeSeconds);
  EXPECT_NE(pairing.number(), number);
  EXPECT_FALSE(pairing.renew(now));
  Pairing restarted(directory_);
  restarted.look(now);
  EXPECT_EQ(restarted.code(now), next->digits);
}

TEST_F(RunThatPairs, ACodeThatSomebodyAskedForIsTheNext) {
  Pairing pairing(directory_);
  const auto asked_for = open_pairing(directory_);
  const auto next = pairing.renew(unix_seconds());
  ASSERT_TRUE(asked_for && next);
  EXPECT_EQ(next->digits, asked_for->digits);
}

TEST_F(RunThatPairs, ADamagedFileIsNoCode) {
  Pairing pairing(directory_);
  for (const char* text : {"", "123456", "123456 ", "123456 x", "12345 99999999999", "1234567 99999999999",
                           "123456 99999999999 1", "123 45 99999999999", "123456 999999999999999999999999999"}) {
    ASSERT_TRUE(store::write_secret_file(directory_ / "pairing", text).ok());
    pairing.look(unix_seconds());
    EXPECT_FALSE(pairing.code(0)) << text;
  }
  ASSERT_TRUE(store::write_secret_file(directory_ / "pairing", "123456 99999999999").ok());
  pairing.look(unix_seconds());
  EXPECT_EQ(pairing.code(0), "123456");
}

TEST_F(RunThatPairs, WhereNoRunIsOrOneInPlainTextThereIsNoCode) {
  write_token(true);
  const auto plain = open_pairing(directory_);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, ErrorCode::input);
  fs::remove(directory_ / "token");
  const auto none = open_pairing(directory_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::input);
}

}  // namespace
}  // namespace motley::runtime
