#include "softmax/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::softmax {
namespace {

using ::testing::HasSubstr;

Error refused(const std::vector<std::string>& words) {
  const Result<Arguments> found = parse_arguments(words);
  EXPECT_FALSE(found) << words.front();
  return found ? Error{} : found.error();
}

TEST(SoftmaxArguments, HaveDefaults) {
  const Arguments found = *parse_arguments({});
  EXPECT_EQ(found.train.samples, 4096U);
  EXPECT_EQ(found.train.features, 32U);
  EXPECT_EQ(found.train.classes, 10U);
  EXPECT_EQ(found.test, 1024U);
  EXPECT_EQ(found.optimizer, "sgd");
  EXPECT_EQ(found.lr, 0.1);
  EXPECT_EQ(found.momentum, 0);
}

TEST(SoftmaxArguments, SayWhatIsMeant) {
  const Arguments found =
      *parse_arguments({"samples=100", "features=3", "classes=2", "test=0", "optimizer=adam", "lr=2.5e-3", "lr=1e-3"});
  EXPECT_EQ(found.train.samples, 100U);
  EXPECT_EQ(found.test_sizes().features, 3U);
  EXPECT_EQ(found.test_sizes().samples, 0U);
  EXPECT_EQ(found.optimizer, "adam");
  EXPECT_EQ(found.lr, 1e-3) << "the last one counts";
  EXPECT_EQ(parse_arguments({"momentum=0.9"})->momentum, 0.9);
}

TEST(SoftmaxArguments, ThatThereAreNotAreRefusedByName) {
  EXPECT_THAT(refused({"sample=3"}).message, HasSubstr("found 'sample=3'"));
  EXPECT_EQ(refused({"sample=3"}).hint, "did you mean samples=?");
  EXPECT_THAT(refused({"4096"}).message, HasSubstr("expected key=value, found '4096'"));
  for (const char* word :
       {"samples=", "samples=0", "samples=-1", "samples=1e3", "samples=3 ", "classes=65537", "test=x", "lr=fast",
        "lr=-1", "lr=nan", "lr=inf", "lr=", "lr=0.1x", "momentum=2", "optimizer=adamw"})
    EXPECT_THAT(refused({word}).message, HasSubstr("found '" + std::string(word) + "'"));
  EXPECT_THAT(refused({"optimizer=adam", "momentum=0.9"}).message, HasSubstr("momentum is of optimizer=sgd"));
}

TEST(SoftmaxArguments, OfAbsurdSizesAreRefused) {
  EXPECT_THAT(refused({"samples=268435456"}).message, HasSubstr("expected samples of at most"));
  EXPECT_THAT(refused({"test=268435456"}).message, HasSubstr("expected test samples of at most"));
  EXPECT_THAT(refused({"samples=1", "test=1", "features=1000000", "classes=1000"}).message,
              HasSubstr("weights of at most"));
  EXPECT_THAT(refused({"samples=18446744073709551616"}).message, HasSubstr("a whole number from 1 to"));
}

}  // namespace
}  // namespace motley::softmax
