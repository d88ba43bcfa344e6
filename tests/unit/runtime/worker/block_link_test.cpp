#include "runtime/worker/block_link.h"

#include <gtest/gtest.h>

#include "../hosts_scene.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime::test {
namespace {

using store::test::spill;

blocks::Hash hash_of(const std::string& text) { return transport::sha256(motley::as_bytes(text)); }

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A run that waits for workers, with a file of three blocks and a bit, and who fetches it by a network of its own.
class BlockLinkTest : public testing::Test {
 protected:
  explicit BlockLinkTest(bool offers = true) {
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 7 + i / 1000);
    spill(file_, content_);
    if (!offers) offers_.reset();
    begin();
  }
  ~BlockLinkTest() override {
    link_.reset();
    listener_->close();
  }

  void begin() {
    scene_ = std::make_unique<Scene>(SceneSettings{.min_workers = 1, .offers = offers_});
    fleet::JoinToken token;
    listener_ = begin_behind(*scene_, here_, token);
    link_ = std::make_unique<BlockLink>(token, "there", transport::Identity{});
    link_->dial();
  }
  void offer() {
    std::vector<std::uint8_t> hashes;
    for (const std::string& block : blocks_of()) {
      const blocks::Hash hash = hash_of(block);
      hashes.insert(hashes.end(), hash.begin(), hash.end());
    }
    const SharedBytes manifest = SharedBytes::copy_of(motley::as_bytes(manifest_));
    ASSERT_TRUE(offers_->add({manifest, hash_of(manifest_), {{file_.string(), content_.size(), hashes}}}));
  }
  std::vector<std::string> blocks_of() const {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < content_.size(); at += wire::kBlockBytesMax)
      all.push_back(content_.substr(at, wire::kBlockBytesMax));
    return all;
  }
  BlockLink::Event next() {
    std::unique_lock lock(link_->mutex());
    link_->changed().wait(lock, [this] { return link_->has_event(); });
    return *link_->take();
  }
  template <class Wanted>
  Wanted expect_next() {
    BlockLink::Event event = next();
    if (const auto* refused = std::get_if<BlockLink::Refused>(&event)) ADD_FAILURE() << refused->error.message;
    EXPECT_TRUE(std::holds_alternative<Wanted>(event)) << event.index();
    return std::holds_alternative<Wanted>(event) ? std::get<Wanted>(event) : Wanted{};
  }
  Error expect_refused() {
    const BlockLink::Event event = next();
    EXPECT_TRUE(std::holds_alternative<BlockLink::Refused>(event)) << event.index();
    return std::get<BlockLink::Refused>(event).error;
  }

  TemporaryDirectory dir_;
  const std::filesystem::path file_ = dir_ / "data.bin";
  std::string content_ = std::string(3 * wire::kBlockBytesMax + 5, '\0');
  const std::string manifest_ = "the list of the files";
  std::shared_ptr<Offers> offers_ = std::make_shared<Offers>();
  std::unique_ptr<Scene> scene_;
  transport::Tcp here_{{.plaintext = true, .identity = {}}};
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<BlockLink> link_;
};

TEST_F(BlockLinkTest, WhatIsOfferedComes) {
  offer();
  link_->ask(1);
  expect_next<BlockLink::Connected>();
  const auto offered = expect_next<wire::Offered>();
  EXPECT_EQ(offered.bytes, manifest_.size());
  EXPECT_EQ(offered.offers, 1U);
  link_->want(hash_of(manifest_), manifest_.size());
  EXPECT_EQ(text_of(expect_next<BlockLink::Content>().bytes), manifest_);
  std::map<blocks::Hash, std::string> wanted;
  for (const std::string& block : blocks_of()) {
    wanted[hash_of(block)] = block;
    link_->want(hash_of(block), block.size());
  }
  while (!wanted.empty()) {
    const auto content = expect_next<BlockLink::Content>();
    ASSERT_EQ(wanted.count(content.hash), 1U);
    EXPECT_EQ(text_of(content.bytes), wanted[content.hash]);
    wanted.erase(content.hash);
  }
  EXPECT_TRUE(scene_->recorder.workers.empty());  // who fetches is no worker
}

TEST_F(BlockLinkTest, WhatWasOpenIsAskedForOnTheNextConnection) {
  offer();
  const std::string first = blocks_of().front();
  link_->want(hash_of(first), first.size());
  link_->dial();
  link_->dial();
  for (;;) {  // the connections in between may have been made, or not
    const BlockLink::Event event = next();
    if (const auto* content = std::get_if<BlockLink::Content>(&event)) {
      EXPECT_EQ(text_of(content->bytes), first);
      break;
    }
    ASSERT_TRUE(std::holds_alternative<BlockLink::Connected>(event)) << event.index();
  }
}

TEST_F(BlockLinkTest, AnOfferThatIsNotThereIsSaid) {
  offer();
  link_->ask(2);
  expect_next<BlockLink::Connected>();
  const auto offered = expect_next<wire::Offered>();
  EXPECT_TRUE(offered.sha256.empty());
  EXPECT_EQ(offered.offers, 1U);
}

TEST_F(BlockLinkTest, OnlyWhatIsOfferedIsServed) {
  offer();
  spill(dir_ / "secret", "not offered");
  link_->want(hash_of("not offered"), 11);
  expect_next<BlockLink::Connected>();
  EXPECT_NE(expect_refused().message.find("not offered here"), std::string::npos);
}

TEST_F(BlockLinkTest, AFileThatChangedIsNotServed) {
  offer();
  spill(file_, content_ + "more");
  const std::string first = blocks_of().front();
  link_->want(hash_of(first), first.size());
  expect_next<BlockLink::Connected>();
  const Error error = expect_refused();
  EXPECT_EQ(error.code, ErrorCode::mismatch);
  EXPECT_NE(error.message.find(file_.string() + " changed while it was offered"), std::string::npos) << error.message;
}

TEST_F(BlockLinkTest, AFileThatIsALinkNowIsNotServed) {
  offer();
  std::filesystem::rename(file_, dir_ / "moved");
  std::error_code failed;
  std::filesystem::create_symlink(dir_ / "moved", file_, failed);
  if (failed) GTEST_SKIP() << "no links here: " << failed.message();
  const std::string first = blocks_of().front();
  link_->want(hash_of(first), first.size());
  expect_next<BlockLink::Connected>();
  EXPECT_EQ(expect_refused().code, ErrorCode::mismatch);
}

class NothingOffered : public BlockLinkTest {
 protected:
  NothingOffered() : BlockLinkTest(false) {}
};

TEST_F(NothingOffered, IsSaidByName) {
  link_->ask(1);
  expect_next<BlockLink::Connected>();
  EXPECT_NE(expect_refused().message.find("motley.files()"), std::string::npos);
}

}  // namespace
}  // namespace motley::runtime::test
