#include "runtime/head/later_sink.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace motley::runtime {
namespace {

struct Notes final : report::Sink {
  std::vector<std::string> texts;
  std::function<void(const std::string&)> on_note;
  void take(const report::Event& event) override {
    texts.push_back(std::get<report::Note>(event).text);
    if (on_note) on_note(texts.back());
  }
};

class LaterSinkTest : public testing::Test {
 protected:
  /// On the mailbox's thread, with all that follows from it.
  void act(const std::function<void()>& what) {
    mailbox->start("test", [] {}, kTick);
    mailbox->post(what);
    mailbox->post([this] { mailbox->post([this] { done.set_value(); }); });  // behind what that posted
    done.get_future().wait();
    mailbox->stop();
  }
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  Notes notes;
  LaterSink later{notes, mailbox};
  std::promise<void> done;
};

TEST_F(LaterSinkTest, NothingIsHandedOnWhileTheMailboxIsAtSomething) {
  std::size_t meanwhile = 99;
  act([&] {
    later.take(report::Note{"a step"});
    later.take(report::Note{"a plan"});
    meanwhile = notes.texts.size();
  });
  EXPECT_EQ(meanwhile, 0U);
  EXPECT_EQ(notes.texts, (std::vector<std::string>{"a step", "a plan"}));
}

TEST_F(LaterSinkTest, WhatIsToldInAnswerComesBehind) {
  notes.on_note = [&](const std::string& text) {
    if (text == "first") later.take(report::Note{"answer"});
  };
  act([&] {
    later.take(report::Note{"first"});
    later.take(report::Note{"second"});
  });
  EXPECT_EQ(notes.texts, (std::vector<std::string>{"first", "second", "answer"}));
}

TEST_F(LaterSinkTest, AtTheEndNothingIsLeft) {
  std::size_t told = 0;
  act([&] {
    later.take(report::Note{"done"});
    later.flush();
    told = notes.texts.size();
  });
  EXPECT_EQ(told, 1U);
  EXPECT_EQ(notes.texts.size(), 1U) << "and nothing twice";
}

}  // namespace
}  // namespace motley::runtime
