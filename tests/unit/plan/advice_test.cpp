#include "plan/advice.h"

#include <gmock/gmock.h>

#include <vector>

namespace motley::plan {
namespace {

Outlook desktop(std::uint64_t samples) { return {"desktop", samples, 1000, 0.2, 0.001, 0}; }
Outlook laptop(std::uint64_t samples) { return {"laptop", samples, 400, 0.2, 0.02, 0.9}; }

TEST(Advice, SaysWhatItGains) {
  const std::vector<Outlook> both{desktop(180), laptop(76)};
  const Advice advice = advise({0.2, 1210}, both);
  EXPECT_EQ(advice.recommendation, "use desktop and laptop: 1.21 times desktop alone");
  EXPECT_EQ(advice.limit, "computing on all of them");
}

TEST(Advice, DoesNotRecommendALossAsAGain) {
  const std::vector<Outlook> both{desktop(180), laptop(76)};
  EXPECT_EQ(advise({0.26, 985}, both).recommendation,
            "use desktop and laptop: no gain over desktop alone by what is known so far");
}

TEST(Advice, SaysWhomToLeaveOutAndWhy) {
  const std::vector<Outlook> both{desktop(256), laptop(0)};
  const Advice advice = advise({0.256, 1000}, both);
  EXPECT_EQ(advice.recommendation,
            "use desktop alone; leave laptop out: a step would take 900 ms with it instead of 256 ms");
  EXPECT_EQ(advice.limit, "computing on desktop");
}

TEST(Advice, NamesTheLinkThatHoldsUpTheStep) {
  std::vector<Outlook> both{desktop(180), laptop(76)};
  both[1].exposed_seconds = 0.05;
  EXPECT_EQ(advise({0.2, 1210}, both).limit, "the link of laptop: 50 ms of a step of 200 ms");
}

TEST(Advice, NamesTheCoordinatorsLinkRatherThanThoseOfItsSenders) {
  std::vector<Outlook> both{desktop(180), laptop(76)};
  both[1].exposed_seconds = 0.05;
  EXPECT_EQ(advise({0.2, 1210, 0.01, 0.04}, both).limit, "the link of the coordinator: 40 ms of a step of 200 ms");
  EXPECT_EQ(advise({0.2, 1210, 0.01, 0.02}, both).limit, "the link of laptop: 50 ms of a step of 200 ms");
}

TEST(Advice, NamesTheUpdateWhereThatTakesLongest) {
  std::vector<Outlook> both{desktop(180), laptop(76)};
  both[1].exposed_seconds = 0.05;
  EXPECT_EQ(advise({0.2, 1210, 0.06, 0}, both).limit,
            "the coordinator, which updates the weights: 60 ms of a step of 200 ms");
}

TEST(Advice, SaysWhatAnEvaluationBesideTheTrainingSaves) {
  const std::vector<Outlook> both{desktop(256), laptop(0)};
  EXPECT_EQ(
      advise({0.256, 1000}, both, 1.5).recommendation,
      advise({0.256, 1000}, both).recommendation + "; it evaluates beside the training, which saves 1500 ms each time");
}

TEST(Advice, AloneThereIsNothingToChoose) {
  const std::vector<Outlook> one{desktop(256)};
  EXPECT_EQ(advise({0.256, 1000}, one).recommendation, "use desktop: nobody else has joined");
}

}  // namespace
}  // namespace motley::plan
