#include "plan/exposed_comm.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::plan {
namespace {

constexpr double kComputed = 0.37;

// Passes that waited so long beyond computing, one after the other.
ExposedComm after(const std::vector<double>& waits, double version = 0) {
  ExposedComm exposed_comm;
  if (version > 0) exposed_comm.first_version(version, 1);
  for (const double wait : waits) exposed_comm.pass(kComputed + wait, kComputed);
  return exposed_comm;
}

std::vector<double> usual(int passes, const std::vector<double>& then) {
  std::vector<double> waits(static_cast<std::size_t>(passes), 0.03);
  waits.insert(waits.end(), then.begin(), then.end());
  return waits;
}

TEST(ExposedComm, FollowsPasses) {
  struct Case {
    const char* what;
    std::vector<double> waits;
    double version, measured, believed;
  };
  const std::vector<Case> cases{
      {"a first pass is cold: of what it waits three quarters are doubted", {0.8}, 0, 0.8, 0.2},
      {"a second at the most, so that a hopeless link is found at once", {39}, 0, 39, 38},
      {"weights took as long before, which two machines do not save", {0.8}, 0.7, 0.8, 0.7},
      {"never more than was measured", {0.5}, 0.7, 0.5, 0.5},
      {"a version that arrived soon says nothing", {0.8}, 0.29, 0.8, 0.2},
      {"the second says more than the first", {1.6, 0.8}, 0, 0.8, 0.4},
      {"four count in full", {0.8, 0.8, 0.8, 0.8}, 0, 0.8, 0.8},
      {"it never is negative", {-0.1}, 0, 0, 0},
  };
  for (const Case& each : cases) {
    const ExposedComm exposed_comm = after(each.waits, each.version);
    EXPECT_NEAR(exposed_comm.seconds().value_or(-1), each.measured, 0.001) << each.what;
    EXPECT_NEAR(exposed_comm.believed(), each.believed, 0.001) << each.what;
  }
}

TEST(ExposedComm, IsGatedOnceItIsKnown) {
  struct Case {
    const char* what;
    std::vector<double> waits;
    double least, most;
  };
  const std::vector<Case> cases{
      {"the first were cold: a shorter one counts half", {0.7, 0.7, 0.7, 0.1, 0.1, 0.1}, 0.09, 0.2},
      {"later ones a fifth", usual(20, {0.034}), 0.0305, 0.032},
      {"once is a hiccup", usual(10, {9}), 0.03, 0.045},
      {"so is the one after the next", usual(10, {9, 0.03, 9}), 0.03, 0.06},
      {"twice in a row is a link that became slow; the nearer is believed", usual(10, {9, 2}), 1.99, 2.01},
      {"two that agree count as both", usual(10, {2, 2.2}), 2.05, 2.15},
  };
  for (const Case& each : cases) {
    const ExposedComm exposed_comm = after(each.waits);
    EXPECT_GE(*exposed_comm.seconds(), each.least) << each.what;
    EXPECT_LE(*exposed_comm.seconds(), each.most) << each.what;
    EXPECT_EQ(exposed_comm.believed(), *exposed_comm.seconds()) << each.what;
  }
}

TEST(ExposedComm, BeforeAnyPassASlowVersionSaysWhatItWillBe) {
  ExposedComm exposed_comm;
  EXPECT_EQ(exposed_comm.believed(), 0);
  exposed_comm.first_version(0.8, 0.25);
  EXPECT_FALSE(exposed_comm.seconds());
  EXPECT_NEAR(exposed_comm.believed(), 0.2, 1e-9);
  EXPECT_DOUBLE_EQ(exposed_comm.expected(), 0.2);
  exposed_comm.first_version(0.2, 1);
  EXPECT_EQ(exposed_comm.believed(), 0) << "a first pass measures it better";
}

TEST(ExposedComm, AVersionThatArrivesSoonerSpeaksForTheLink) {
  ExposedComm exposed_comm = after(usual(0, {0.8, 0.8, 0.8, 0.8}));
  EXPECT_FALSE(exposed_comm.version(0.2)) << "nothing to compare with";
  EXPECT_FALSE(exposed_comm.version(0.15));
  EXPECT_NEAR(exposed_comm.believed(), 0.8, 1e-9);
  EXPECT_TRUE(exposed_comm.version(0.01));
  EXPECT_NEAR(exposed_comm.believed(), 0.04, 1e-9);
  exposed_comm.pass(kComputed + 0.8, kComputed);
  EXPECT_NEAR(exposed_comm.believed(), 0.8, 1e-9) << "the first pass says more";
  EXPECT_FALSE(exposed_comm.version(0.001)) << "compared with those since that pass";
}

TEST(ExposedComm, FadesWhileThereIsNoShare) {
  ExposedComm measured = after(usual(0, {0.8, 0.8, 0.8, 0.8}));
  ExposedComm told = after({}, 0.8);
  for (int i = 0; i < 23; ++i) {
    measured.fade();
    told.fade();
  }
  EXPECT_NEAR(measured.believed(), 0.4, 0.01);
  EXPECT_NEAR(told.believed(), 0.4, 0.01);
  measured.pass(kComputed + 0.1, kComputed);
  EXPECT_NEAR(measured.believed(), 0.1, 0.001);
}

TEST(ExposedComm, AnotherDeviceOrCodecIsAnotherWait) {
  ExposedComm exposed_comm = after(usual(0, {0.8, 0.8, 0.8, 0.8}), 0.4);
  exposed_comm.scale(0.25);
  EXPECT_NEAR(exposed_comm.believed(), 0.2, 1e-9);
  exposed_comm.pass(kComputed + 0.3, kComputed);
  EXPECT_NEAR(exposed_comm.believed(), 0.3, 1e-9) << "it says more than the arithmetic";
  exposed_comm.forget();
  EXPECT_FALSE(exposed_comm.seconds());
  EXPECT_DOUBLE_EQ(exposed_comm.believed(), 0.4) << "of the link it is known still";
  exposed_comm.scale(0.25);
  EXPECT_FALSE(exposed_comm.seconds());
}

TEST(ExposedComm, OfOtherBytesTheNextPassIsBelievedWhole) {
  for (const double wait : {0.0, 0.001, 9.0}) {
    ExposedComm exposed_comm = after(usual(100, {0.09}));
    exposed_comm.scale(0.5);
    EXPECT_NEAR(exposed_comm.believed(), 0.015, 0.005);
    exposed_comm.pass(kComputed + wait, kComputed);
    EXPECT_NEAR(exposed_comm.believed(), wait, 1e-9);
    exposed_comm.pass(kComputed + 1.5 * wait, kComputed);
    EXPECT_NEAR(exposed_comm.believed(), 1.25 * wait, 0.05 * wait + 1e-9) << "of these nothing else is known yet";
  }
}

TEST(ExposedComm, IsSharedWithThoseWhoSend) {
  ExposedComm exposed_comm = after({}, 0);
  EXPECT_DOUBLE_EQ(exposed_comm.for_each_sender(0.05), 0.05);
  EXPECT_EQ(exposed_comm.for_senders(0.05), 0) << "nothing was measured beside others";
  exposed_comm.expect_senders(3, 0.05);
  for (int i = 0; i < 4; ++i) exposed_comm.pass(kComputed + 0.12, kComputed);
  EXPECT_NEAR(exposed_comm.for_each_sender(0.05), 0.04, 1e-9) << "computing hides a part";
  EXPECT_NEAR(exposed_comm.for_senders(0.05), 0.08, 1e-9);
  exposed_comm.expect_senders(2, 0.05);
  EXPECT_NEAR(exposed_comm.believed(), 0.08, 1e-9);
  exposed_comm.expect_senders(3, 0.03);
  EXPECT_NEAR(exposed_comm.believed(), 0.11, 1e-9);
  EXPECT_EQ(exposed_comm.for_each_sender(0), 0);
}

}  // namespace
}  // namespace motley::plan
