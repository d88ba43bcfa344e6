// Both sides of a measurement in one process; tests/e2e has them as programs.

#include "bench/link.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace motley::bench {
namespace {

/// Serves in a thread of its own until the first that measured has left, or until it is stopped.
class Listening {
 public:
  explicit Listening(bool plaintext = false) {
    options_.listen = "127.0.0.1:0";
    options_.plaintext = plaintext;
    options_.once = true;
    events_.opened = [this](const fleet::JoinToken& made) { opened_.set_value(made); };
    events_.measuring = [this](const std::string&) { ++came; };
    events_.left = [this](const std::string&) { ++left; };
    thread_ = std::thread([this] { EXPECT_TRUE(serve_link(options_, events_, stop_).ok()); });
    token = opened_.get_future().get();
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() {
    stop_.request();
    wait();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  fleet::JoinToken token;
  int came = 0, left = 0;  // to be read after wait()

 private:
  LinkListenOptions options_;
  LinkListenEvents events_;
  std::promise<fleet::JoinToken> opened_;
  runtime::StopSource stop_;
  std::thread thread_;
};

Result<LinkReport> measure(const fleet::JoinToken& token, std::vector<std::string>& notes) {
  runtime::StopSource stop;
  return measure_link({token, 0.05}, [&notes](const std::string& text) { notes.push_back(text); }, stop);
}

TEST(Link, IsMeasuredEncryptedAndPlain) {
  for (const bool plaintext : {false, true}) {
    Listening listening(plaintext);
    std::vector<std::string> notes;
    const Result<LinkReport> report = measure(listening.token, notes);
    ASSERT_TRUE(report.ok()) << report.error().message;
    listening.wait();
    EXPECT_EQ(listening.came, 1);
    EXPECT_EQ(listening.left, 1);
    EXPECT_EQ(notes.size(), 4U);
    EXPECT_EQ(report->cipher.empty(), plaintext);
    const LinkFigures& f = report->figures;
    EXPECT_EQ(f.near.kind, InterfaceKind::loopback);
    EXPECT_EQ(f.far.kind, InterfaceKind::loopback);
    EXPECT_GT(f.idle.samples, 0U);
    for (const Phase* phase : {&f.up, &f.down, &f.both}) {
      EXPECT_EQ(phase->up_mbit_s > 0, phase != &f.down);
      EXPECT_EQ(phase->down_mbit_s > 0, phase != &f.up);
      EXPECT_EQ(phase->round_trips.lost, 0U);
    }
  }
}

TEST(Link, AnotherSecretIsRefused) {
  Listening listening;
  fleet::JoinToken other = listening.token;
  other.secret[0] ^= 1;
  std::vector<std::string> notes;
  const Result<LinkReport> report = measure(other, notes);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::refused);
  EXPECT_TRUE(notes.empty());
}

TEST(Link, AStopIsNoticed) {
  Listening listening;
  runtime::StopSource stop;
  const auto note = [&stop](const std::string& text) {
    if (text == "measuring: down") stop.request();
  };
  const Result<LinkReport> report = measure_link({listening.token, 0.05}, note, stop);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::interrupted);
}

}  // namespace
}  // namespace motley::bench
