// Blocks of a head's files from another machine that has them: what it says, whom it lets in, and what a fetch makes of
// it.

#include "runtime/worker/data_share.h"

#include <gtest/gtest.h>

#include "../hosts_scene.h"
#include "runtime/worker/block_fetch.h"
#include "wire/limits.h"

namespace motley::runtime::test {
namespace {

namespace fs = std::filesystem;
using store::test::spill;

blocks::Hash sha_of(const std::string& text) { return transport::sha256(motley::as_bytes(text)); }

// A file of some blocks that are all different, as it lies at that place.
struct SharedFile {
  explicit SharedFile(fs::path place) : path(std::move(place)) { spill(path, content); }

  static std::string make() {
    std::string text(6 * wire::kBlockBytesMax + 5, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 1000);
    return text;
  }
  std::vector<std::string> blocks_of() const {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < content.size(); at += wire::kBlockBytesMax)
      all.push_back(content.substr(at, wire::kBlockBytesMax));
    return all;
  }
  blocks::Catalogue::Offer offer() const {
    std::vector<std::uint8_t> hashes;
    for (const std::string& block : blocks_of()) {
      const blocks::Hash hash = sha_of(block);
      hashes.insert(hashes.end(), hash.begin(), hash.end());
    }
    return {
        SharedBytes::copy_of(motley::as_bytes(manifest)), sha_of(manifest), {{path.string(), content.size(), hashes}}};
  }

  const fs::path path;
  const std::string content = make();
  const std::string manifest = "the list of the files";
};

// A run that waits for workers and offers that file, and a machine that fetches it.
class BlockFetchTest : public testing::Test {
 protected:
  BlockFetchTest() {
    const auto offers = std::make_shared<Offers>();
    EXPECT_TRUE(offers->add(on_head_.offer()));
    scene_ = std::make_unique<Scene>(SceneSettings{.min_workers = 1, .offers = offers});
    listener_ = begin_behind(*scene_, tcp_, token_);
    fetch_ = std::make_unique<BlockFetch>(token_, "fetches", transport::Identity{});
    fetch_->dial();
    fetch_->ask(1);
    while (!offered_) next();
  }
  ~BlockFetchTest() override {
    fetch_.reset();
    listener_->close();
  }

  void next() {
    {
      std::unique_lock lock(fetch_->inbox().mutex);
      fetch_->inbox().changed.wait(lock, [this] { return !fetch_->inbox().events.empty(); });
    }
    std::optional<BlockFetch::Event> event = fetch_->take();
    if (!event) return;
    if (auto* content = std::get_if<BlockLink::Content>(&*event)) came_[content->hash] = std::move(content->bytes);
    if (const auto* offered = std::get_if<wire::Offered>(&*event)) offered_ = offered->sources;
    if (const auto* dropped = std::get_if<BlockFetch::Dropped>(&*event)) dropped_.push_back(dropped->why);
    if (const auto* refused = std::get_if<BlockLink::Refused>(&*event)) FAIL() << refused->error.message;
  }
  void ask_for_all() {
    came_.clear();
    for (const std::string& block : on_head_.blocks_of()) fetch_->want(sha_of(block), block.size());
  }
  void expect_all() {
    while (came_.size() < on_head_.blocks_of().size()) next();
    for (const std::string& block : on_head_.blocks_of()) {
      const std::vector<std::byte>& bytes = came_[sha_of(block)];
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), block);
    }
  }

  TemporaryDirectory dir_;
  const SharedFile on_head_{dir_ / "head.bin"};
  fleet::JoinToken token_;
  std::unique_ptr<Scene> scene_;
  transport::Tcp tcp_{{.plaintext = true, .identity = {}}};
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<BlockFetch> fetch_;
  std::map<blocks::Hash, std::vector<std::byte>> came_;
  std::vector<std::string> dropped_;
  bool offered_ = false;
};

// Likewise, beside another machine that has a copy.
class DataShareTest : public BlockFetchTest {
 protected:
  DataShareTest() : share_(std::make_unique<DataShare>(token_, "has it", transport::Identity{})) {
    EXPECT_TRUE(share_->add(there_.offer()));
    fetch_->find_sources(sha_of(on_head_.manifest));
  }
  ~DataShareTest() override { fetch_.reset(); }

  const SharedFile there_{dir_ / "there.bin"};
  std::unique_ptr<DataShare> share_;
};

TEST_F(DataShareTest, ASetComesFromAnotherMachineToo) {
  while (fetch_->bytes_from_others() == 0) {
    ask_for_all();
    expect_all();
  }
  EXPECT_TRUE(dropped_.empty());
  EXPECT_TRUE(scene_->recorder.workers.empty()) << "neither is a worker";
}

TEST_F(DataShareTest, OneWrongBlockIsTheEndOfASource) {
  const fs::file_time_type time = fs::last_write_time(there_.path);
  spill(there_.path, std::string(there_.content.size(), 'x'));
  fs::last_write_time(there_.path, time);
  while (dropped_.empty()) {
    ask_for_all();
    expect_all();
  }
  EXPECT_NE(dropped_.front().find("another content"), std::string::npos) << dropped_.front();
  EXPECT_EQ(fetch_->bytes_from_others(), 0U);
  ask_for_all();
  expect_all();
}

TEST_F(DataShareTest, WhatASourceThatEndsHasNotBroughtComesFromTheHead) {
  while (fetch_->bytes_from_others() == 0) {
    ask_for_all();
    expect_all();
  }
  ask_for_all();
  share_->close();
  expect_all();
  while (dropped_.empty()) next();
  ask_for_all();
  expect_all();
}

TEST_F(DataShareTest, WhatTheHeadForgetsIsLetInNoLonger) {
  while (fetch_->bytes_from_others() == 0) {
    ask_for_all();
    expect_all();
  }
  fetch_->dial();  // by another connection the head knows it anew
  while (dropped_.empty()) next();
  const std::uint64_t before = fetch_->bytes_from_others();
  while (fetch_->bytes_from_others() == before) {
    ask_for_all();
    expect_all();
  }
}

// Where the file has an address besides, which the test asks.
class OriginTest : public BlockFetchTest {
 protected:
  void open() {
    fetch_->origin_opens();
    while (fetch_->window(1) < 2) next();
  }
  // What the origin was asked for, of its answers.
  std::vector<std::string> asked() {
    std::vector<std::string> all;
    for (const blocks::Sources::Open& each : fetch_->origin_asked())
      for (const std::string& block : on_head_.blocks_of())
        if (sha_of(block) == each.hash) all.push_back(block);
    return all;
  }
  void bring(const std::string& block, const std::string& content) {
    const auto bytes = motley::as_bytes(content);
    fetch_->origin_brings(sha_of(block), {bytes.begin(), bytes.end()});
  }
};

TEST_F(OriginTest, IsOneMoreSource) {
  open();
  ask_for_all();
  const std::vector<std::string> of_origin = asked();
  EXPECT_FALSE(of_origin.empty());
  EXPECT_LT(of_origin.size(), on_head_.blocks_of().size());
  std::size_t bytes = 0;
  for (const std::string& block : of_origin) {
    bring(block, block);
    bytes += block.size();
  }
  expect_all();
  EXPECT_EQ(fetch_->bytes_from_origin(), bytes);
  EXPECT_EQ(fetch_->bytes_from_others(), 0U);
  EXPECT_TRUE(asked().empty());
}

TEST_F(OriginTest, HearsOfWhatIsWaitedForByNow) {
  open();
  ask_for_all();
  const std::vector<std::string> of_origin = asked();
  ASSERT_FALSE(of_origin.empty());
  const blocks::Hash hash = sha_of(of_origin.front());
  fetch_->want(hash, of_origin.front().size(), true);
  const auto hurried = fetch_->origin_asked();
  ASSERT_EQ(hurried.size(), 1U);
  EXPECT_EQ(hurried.front().hash, hash);
  EXPECT_TRUE(hurried.front().waited_for);
}

TEST_F(OriginTest, OneWrongBlockIsItsEnd) {
  open();
  ask_for_all();
  const std::vector<std::string> of_origin = asked();
  ASSERT_FALSE(of_origin.empty());
  bring(of_origin.front(), "x" + of_origin.front().substr(1));
  for (const std::string& block : of_origin) bring(block, block);  // too late
  expect_all();
  ASSERT_EQ(dropped_.size(), 1U);
  EXPECT_NE(dropped_.front().find("another content"), std::string::npos) << dropped_.front();
  EXPECT_EQ(fetch_->bytes_from_origin(), 0U);
  EXPECT_TRUE(asked().empty());
  ask_for_all();
  expect_all();
}

TEST_F(OriginTest, WhatItHasNotBroughtComesFromTheHead) {
  open();
  ask_for_all();
  fetch_->origin_ends("it is gone");
  expect_all();
  fetch_->origin_ends("once more");
  fetch_->origin_opens();
  ask_for_all();
  expect_all();
  EXPECT_EQ(dropped_.size(), 1U);
  EXPECT_EQ(fetch_->window(1), 1U);
}

TEST_F(OriginTest, WhatNobodyAskedItForIsNotTaken) {
  open();
  bring("something", "something");
  ask_for_all();
  for (const std::string& block : asked()) bring(block, block);
  expect_all();
  EXPECT_FALSE(came_.contains(sha_of("something")));
}

// The door alone, with keys.
class BlockDoorTest : public testing::Test {
 protected:
  BlockDoorTest() {
    const auto offers = std::make_shared<Offers>();
    EXPECT_TRUE(offers->add(file_.offer()));
    of_head_.run = 7;
    door_ = std::make_unique<BlockDoor>(offers, of_head_, own_);
    guest_ = {.id = 5, .secret = std::vector<std::uint8_t>(16, 9), .spki = {known_.spki.begin(), known_.spki.end()}};
  }
  fleet::JoinToken token_of(const wire::Source& source) {
    fleet::JoinToken token = of_head_;
    token.addresses = {"127.0.0.1"};
    token.port = static_cast<std::uint16_t>(source.port);
    token.id = guest_.id;
    token.spki = own_.spki;
    std::ranges::copy(guest_.secret, token.secret.begin());
    return token;
  }
  static BlockLink::Event next(BlockLink& link) {
    std::unique_lock lock(link.mutex());
    link.changed().wait(lock, [&] { return link.has_event(); });
    return *link.take();
  }

  TemporaryDirectory dir_;
  const SharedFile file_{dir_ / "set.bin"};
  const transport::Identity own_ = transport::make_identity(), known_ = transport::make_identity();
  fleet::JoinToken of_head_;
  std::unique_ptr<BlockDoor> door_;
  wire::Guest guest_;
};

TEST_F(BlockDoorTest, WhoWasNamedGetsBlocksAndNothingElse) {
  const Result<wire::Source> source = door_->admit(guest_);
  ASSERT_TRUE(source) << message(source);
  BlockLink link(token_of(*source), "guest", known_, std::make_shared<BlockLink::Inbox>(), 1);
  link.dial();
  ASSERT_TRUE(std::holds_alternative<BlockLink::Connected>(next(link)));
  const std::string first = file_.blocks_of().front();
  link.want(sha_of(first), first.size());
  const BlockLink::Event event = next(link);
  ASSERT_TRUE(std::holds_alternative<BlockLink::Content>(event)) << event.index();
  EXPECT_EQ(std::get<BlockLink::Content>(event).bytes.size(), first.size());
  link.want(sha_of("a secret"), 8);
  EXPECT_TRUE(std::holds_alternative<BlockLink::Refused>(next(link)));
}

TEST_F(BlockDoorTest, AnotherKeyOrSecretOrNumberDoesNotOpenIt) {
  const Result<wire::Source> source = door_->admit(guest_);
  ASSERT_TRUE(source) << message(source);
  const fleet::JoinToken right = token_of(*source);
  fleet::JoinToken secret = right, number = right;
  secret.secret[0] ^= 1;
  number.id += 1;
  const transport::Identity stranger = transport::make_identity();
  const std::vector<std::pair<fleet::JoinToken, transport::Identity>> tries{
      {right, stranger}, {secret, known_}, {number, known_}};
  for (const auto& [token, identity] : tries) {
    BlockLink link(token, "stranger", identity, std::make_shared<BlockLink::Inbox>(), 1);
    link.dial();
    EXPECT_TRUE(std::holds_alternative<BlockLink::Refused>(next(link)));
  }
}

TEST_F(BlockDoorTest, WhoIsDismissedIsSentAwayAndAnEmptyDoorIsShut) {
  const Result<wire::Source> source = door_->admit(guest_);
  ASSERT_TRUE(source) << message(source);
  BlockLink link(token_of(*source), "guest", known_, std::make_shared<BlockLink::Inbox>(), 1);
  link.dial();
  ASSERT_TRUE(std::holds_alternative<BlockLink::Connected>(next(link)));
  door_->dismiss(guest_.id);
  EXPECT_FALSE(std::holds_alternative<BlockLink::Connected>(next(link)));
  BlockLink again(token_of(*source), "guest", known_, std::make_shared<BlockLink::Inbox>(), 1);
  again.dial();
  EXPECT_TRUE(std::holds_alternative<BlockLink::Broken>(next(again)));
}

TEST_F(BlockDoorTest, APathOfThisMachineIsNotToldToOthers) {
  const Result<wire::Source> source = door_->admit(guest_);
  ASSERT_TRUE(source) << message(source);
  BlockLink link(token_of(*source), "guest", known_, std::make_shared<BlockLink::Inbox>(), 1);
  link.dial();
  ASSERT_TRUE(std::holds_alternative<BlockLink::Connected>(next(link)));
  spill(file_.path, "shorter");
  const std::string first = file_.blocks_of().front();
  link.want(sha_of(first), first.size());
  const BlockLink::Event event = next(link);
  ASSERT_TRUE(std::holds_alternative<BlockLink::Refused>(event)) << event.index();
  EXPECT_EQ(std::get<BlockLink::Refused>(event).error.message.find(file_.path.string()), std::string::npos);
}

TEST_F(BlockDoorTest, AGuestThatCannotBeIsNotLetIn) {
  wire::Guest without_key = guest_;
  without_key.spki.clear();
  EXPECT_FALSE(door_->admit(without_key));
  for (std::uint64_t id = 1; id <= BlockDoor::kGuestsMax; ++id) {
    guest_.id = id;
    EXPECT_TRUE(door_->admit(guest_));
  }
  guest_.id = BlockDoor::kGuestsMax + 1;
  const Result<wire::Source> more = door_->admit(guest_);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::busy);
}

TEST(TokenFor, TakesNumericAddressesAlone) {
  fleet::JoinToken of_head;
  of_head.run = 3;
  const wire::Source right{.id = 4,
                           .port = 5,
                           .addresses = {"10.0.0.7", "2001:db8::7"},
                           .secret = std::vector<std::uint8_t>(16, 1),
                           .spki = std::vector<std::uint8_t>(32, 2)};
  const Result<fleet::JoinToken> token = token_for(right, of_head);
  ASSERT_TRUE(token) << message(token);
  EXPECT_EQ(token->run, 3U);
  EXPECT_EQ(token->id, 4U);
  for (const char* address : {"@motley-1", "intranet.example", "", "10.0.0.7 "}) {
    wire::Source wrong = right;
    wrong.addresses.emplace_back(address);
    EXPECT_FALSE(token_for(wrong, of_head)) << address;
  }
  wire::Source wrong = right;
  wrong.port = 65536;
  EXPECT_FALSE(token_for(wrong, of_head));
  wrong = right;
  wrong.spki.clear();
  EXPECT_FALSE(token_for(wrong, of_head));
  wrong = right;
  wrong.addresses = std::vector<std::string>(fleet::JoinToken::kAddressesMax + 1, "10.0.0.7");
  EXPECT_FALSE(token_for(wrong, of_head));
}

}  // namespace
}  // namespace motley::runtime::test
