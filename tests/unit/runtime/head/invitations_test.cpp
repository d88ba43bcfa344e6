#include "runtime/head/invitations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "../../store/owner.h"
#include "store/secret_file.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNow = 1'000'000'000;

class InvitationsTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir);
    own.addresses = {"127.0.0.1"};
    own.port = 7117;
    own.run = 77;
    own.id = 5;
    own.secret = {1, 2, 3};
    ASSERT_TRUE(store::write_secret_file(dir / "token", fleet::to_text(own) + "\n").ok());
  }
  void TearDown() override { fs::remove_all(dir); }
  static transport::Digest key(std::uint8_t number) { return transport::Digest{number}; }
  fleet::JoinToken once() const {
    const Result<fleet::JoinToken> made = invite_once(dir, std::nullopt);
    EXPECT_TRUE(made.ok());
    return *made;
  }
  static std::string why(const Status& status) { return status ? "" : status.error().message; }

  fs::path dir = fs::path(testing::TempDir()) / ("motley-invitations-" + std::to_string(getpid()));
  fleet::JoinToken own;
};

TEST_F(InvitationsTest, TheRunsOwnTokenLetsEverybodyIn) {
  Invitations invitations(own, dir);
  ASSERT_NE(invitations.find(5), nullptr);
  EXPECT_EQ(invitations.find(5)->secret, own.secret);
  EXPECT_EQ(invitations.find(6), nullptr);
  for (std::uint8_t i = 1; i < 20; ++i) EXPECT_TRUE(invitations.admit(5, key(i), kNow).ok());
  EXPECT_TRUE(invitations.admit(5, {}, kNow).ok());
}

TEST_F(InvitationsTest, AnExpiredTokenLetsInWhoWasInAndNobodyElse) {
  own.expires_unix_s = kNow;
  Invitations invitations(own, dir);
  EXPECT_TRUE(invitations.admit(5, key(1), kNow - 1).ok());
  EXPECT_TRUE(invitations.admit(5, key(1), kNow + 1).ok());
  EXPECT_NE(why(invitations.admit(5, key(2), kNow)).find("expired"), std::string::npos);
  EXPECT_FALSE(invitations.admit(5, {}, kNow).ok());  // without a key nobody is known
}

TEST_F(InvitationsTest, ATokenForOneLetsInOne) {
  Invitations invitations(own, dir);
  const fleet::JoinToken token = once();  // made while the head runs
  EXPECT_EQ(token.run, own.run);
  EXPECT_NE(token.secret, own.secret);
  ASSERT_NE(invitations.find(token.id), nullptr);
  EXPECT_EQ(*invitations.find(token.id), token);
  EXPECT_TRUE(invitations.admit(token.id, key(1), kNow).ok());
  EXPECT_TRUE(invitations.admit(token.id, key(1), kNow).ok());  // it comes back
  EXPECT_NE(why(invitations.admit(token.id, key(2), kNow)).find("has let one in"), std::string::npos);
  EXPECT_TRUE(invitations.admit(own.id, key(2), kNow).ok());
  Invitations restarted(own, dir);
  ASSERT_NE(restarted.find(token.id), nullptr);
  EXPECT_FALSE(restarted.admit(token.id, key(2), kNow).ok());
  EXPECT_TRUE(restarted.admit(token.id, key(1), kNow).ok());
  store::test::expect_for_its_owner(fs::directory_iterator(dir / "invitations")->path());
}

TEST_F(InvitationsTest, AnInvitationOfAKeyLetsInThatKeyAlone) {
  own.expires_unix_s = kNow - 1;
  Invitations invitations(own, dir);
  const fleet::JoinToken token = invitations.invite(key(1));
  EXPECT_EQ(token.run, own.run);
  EXPECT_EQ(token.spki, own.spki);
  EXPECT_NE(token.id, own.id);
  EXPECT_NE(token.secret, own.secret);
  Invitations restarted(own, dir);
  for (Invitations* each : {&invitations, &restarted}) {
    ASSERT_NE(each->find(token.id), nullptr);
    EXPECT_EQ(*each->find(token.id), token);
    EXPECT_NE(why(each->admit(token.id, key(2), kNow)).find("has let one in"), std::string::npos);
    EXPECT_FALSE(each->admit(token.id, {}, kNow).ok());
    EXPECT_TRUE(each->admit(token.id, {}, kNow, true).ok());  // the head's own user could read its token
    EXPECT_TRUE(each->admit(token.id, key(1), kNow).ok());
    EXPECT_TRUE(each->admit(token.id, key(1), kNow).ok());
  }
  store::test::expect_for_its_owner(fs::directory_iterator(dir / "invitations")->path());
  invitations.shut_out(key(1));
  EXPECT_FALSE(invitations.admit(token.id, key(1), kNow).ok());
}

TEST_F(InvitationsTest, TheNextRunOfALaunchKnowsTheGuestsOfTheOneBefore) {
  Invitations before(own, dir);
  const fleet::JoinToken guest = before.invite(key(1)), sent_away = before.invite(key(2));
  before.shut_out(key(2));
  const fs::path next = dir / "next";
  fs::create_directories(next);
  const GuestList guests = guest_list(dir);
  EXPECT_EQ(guests.invitations.size(), 2U);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(write_guest_list(guests, next).ok());
  EXPECT_EQ(guest_list(next).revoked, guests.revoked);
  Invitations after(own, next);
  ASSERT_TRUE(after.find(guest.id) != nullptr && after.find(sent_away.id) != nullptr);
  EXPECT_TRUE(after.admit(guest.id, key(1), kNow).ok());
  EXPECT_FALSE(after.admit(guest.id, key(3), kNow).ok());
  EXPECT_FALSE(after.admit(sent_away.id, key(2), kNow).ok());
  EXPECT_TRUE(write_guest_list({}, dir / "nowhere").ok());
}

TEST_F(InvitationsTest, WithoutAKeyATokenForOneIsUsedOnce) {
  Invitations invitations(own, dir);
  const fleet::JoinToken token = once();
  ASSERT_NE(invitations.find(token.id), nullptr);
  EXPECT_TRUE(invitations.admit(token.id, {}, kNow).ok());
  EXPECT_FALSE(invitations.admit(token.id, {}, kNow).ok());
  EXPECT_TRUE(invitations.admit(token.id, {}, kNow, true).ok());  // this machine: it asks for a script, then joins
}

TEST_F(InvitationsTest, ARevokedTokenIsUnknown) {
  Invitations invitations(own, dir);
  const fleet::JoinToken token = once();
  ASSERT_NE(invitations.find(token.id), nullptr);
  EXPECT_TRUE(invitations.revoked_now().tokens.empty());
  ASSERT_TRUE(revoke(dir, fleet::to_text(token)).ok());
  EXPECT_EQ(invitations.revoked_now().tokens, std::vector<std::uint64_t>{token.id});
  EXPECT_TRUE(invitations.revoked_now().tokens.empty());
  EXPECT_EQ(invitations.find(token.id), nullptr);
  EXPECT_FALSE(invitations.admit(token.id, key(1), kNow).ok());
  Invitations restarted(own, dir);
  EXPECT_EQ(restarted.find(token.id), nullptr);
  EXPECT_NE(restarted.find(own.id), nullptr);
}

TEST_F(InvitationsTest, WhoIsSentAwayStaysOutByItsKey) {
  Invitations invitations(own, dir);
  ASSERT_TRUE(invitations.admit(own.id, key(1), kNow).ok());
  ASSERT_TRUE(revoke(dir, "laptop").ok());
  ASSERT_TRUE(revoke(dir, "desktop/cuda:0").ok());
  EXPECT_EQ(invitations.revoked_now().workers, (std::vector<std::string>{"laptop", "desktop/cuda:0"}));
  invitations.shut_out(key(1));
  EXPECT_TRUE(invitations.revoked_now().workers.empty());
  EXPECT_NE(why(invitations.admit(own.id, key(1), kNow)).find("sent away"), std::string::npos);
  EXPECT_TRUE(invitations.admit(own.id, key(2), kNow).ok());
  Invitations restarted(own, dir);
  EXPECT_FALSE(restarted.admit(own.id, key(1), kNow).ok());
  EXPECT_TRUE(restarted.revoked_now().workers.empty());  // names of before are over
}

TEST_F(InvitationsTest, WhoHasNoKeyIsSentAwayByName) {
  Invitations invitations(own, dir);
  EXPECT_FALSE(invitations.is_sent_away({}, "laptop/cpu"));
  ASSERT_TRUE(revoke(dir, "laptop").ok());
  EXPECT_EQ(invitations.revoked_now().workers, std::vector<std::string>{"laptop"});
  EXPECT_TRUE(invitations.is_sent_away({}, "laptop/cpu"));
  EXPECT_FALSE(invitations.is_sent_away({}, "laptop2/cpu"));
  EXPECT_FALSE(invitations.is_sent_away(key(1), "laptop/cpu"));  // its key is what counts
  EXPECT_TRUE(Invitations(own, dir).is_sent_away({}, "laptop/cpu"));
}

TEST_F(InvitationsTest, FilesThatMakeNoSenseLetNobodyIn) {
  fs::create_directories(dir / "invitations");
  const fleet::JoinToken token = once();
  fleet::JoinToken other = token;
  other.run = 78;
  const fs::path file = fs::directory_iterator(dir / "invitations")->path();
  for (const std::string& text : {std::string(), std::string("x"), fleet::to_text(own), fleet::to_text(other)}) {
    ASSERT_TRUE(store::write_secret_file(file, text).ok());
    EXPECT_EQ(Invitations(own, dir).find(token.id), nullptr) << text;
  }
  ASSERT_TRUE(store::write_secret_file(dir / "revoked", "token\n\nkey 12\nworker \ntoken zz\nelse\n").ok());
  const Invitations::Revoked revoked = Invitations(own, dir).revoked_now();
  EXPECT_TRUE(revoked.tokens.empty() && revoked.workers.empty());
}

TEST_F(InvitationsTest, WhatCannotBeRevokedIsSaid) {
  fleet::JoinToken other = own;
  other.run = 78;
  for (const std::string& what : {fleet::to_text(other), std::string("motley1.x"), std::string(),
                                  std::string("a\nworker b"), std::string(65, 'n')}) {
    EXPECT_EQ(revoke(dir, what).error().code, ErrorCode::input) << what;
  }
  EXPECT_EQ(revoke(dir / "none", "laptop").error().code, ErrorCode::input);
  EXPECT_EQ(invite_once(dir / "none", std::nullopt).error().code, ErrorCode::input);
}

}  // namespace
}  // namespace motley::runtime
