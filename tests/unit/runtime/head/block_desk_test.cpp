#include "runtime/head/block_desk.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "../../store/temporary.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime::test {
namespace {

using store::test::spill;
using store::test::TemporaryDirectory;

class Wire final : public transport::Connection {
 public:
  void start(std::shared_ptr<transport::Receiver>) override {}
  void send(wire::Frame frame, transport::Priority) override {
    const std::lock_guard lock(mutex_);
    frames_.push_back(std::move(frame));
  }
  void close() override {}
  void set_reading(bool) override {}
  std::size_t queued_bytes() const override { return 0; }
  transport::Traffic traffic() const override { return {}; }
  const transport::PeerIdentity& peer() const override { return peer_; }
  void mark_proven() override {}
  std::size_t blocks() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        frames_, [](const wire::Frame& frame) { return frame.header.type == wire::FrameType::block; }));
  }

 private:
  const transport::PeerIdentity peer_{};
  mutable std::mutex mutex_;
  std::vector<wire::Frame> frames_;
};

// A file of one small block, and somebody who wants it. What the desk has to do is done when it is gone.
class BlockDeskTest : public testing::Test {
 protected:
  BlockDeskTest() {
    spill(dir_ / "data", "content");
    EXPECT_TRUE(offers_->add({.manifest = SharedBytes::copy_of(motley::as_bytes(std::string("list"))),
                              .hash = transport::sha256(motley::as_bytes(std::string("list"))),
                              .files = {{(dir_ / "data").string(), 7, {hash_.begin(), hash_.end()}}}}));
  }
  std::size_t blocks_after(bool training, int steps) {
    const auto wire = std::make_shared<Wire>();
    {
      BlockDesk desk(offers_, 1);
      desk.set_training(training);
      desk.open(1, wire);
      desk.step(0.1, 10);  // the turn in which it flows first
      EXPECT_TRUE(desk.ask(1, {.offer = 0, .sha256 = {hash_.begin(), hash_.end()}}));
      for (int i = 0; i < steps; ++i) desk.step(0.1, 10);
    }
    return wire->blocks();
  }

  TemporaryDirectory dir_;
  const blocks::Hash hash_ = transport::sha256(motley::as_bytes(std::string("content")));
  std::shared_ptr<Offers> offers_ = std::make_shared<Offers>();
};

TEST_F(BlockDeskTest, WhatIsSmallGoesOutAtOnceAlsoBesideSteps) { EXPECT_EQ(blocks_after(true, 0), 1U); }

TEST_F(BlockDeskTest, ItGoesOutWhenItsTurnHasCome) { EXPECT_EQ(blocks_after(true, 5), 1U); }

TEST_F(BlockDeskTest, WhereNobodyTrainsItGoesOutAtOnce) { EXPECT_EQ(blocks_after(false, 0), 1U); }

}  // namespace
}  // namespace motley::runtime::test
