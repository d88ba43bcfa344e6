#include "runtime/persist/speed_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace motley::runtime {
namespace {

class SpeedStoreTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("speed_store_") + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
       std::to_string(::getpid()));
  std::filesystem::path file_ = directory_ / "cache" / "speeds.json";
};

TEST_F(SpeedStoreTest, GivesBackWhatWasKept) {
  const SpeedStore store(file_);
  EXPECT_FALSE(store.find("laptop"));
  store.keep("laptop", {0.002, 0.0003});
  store.keep("desktop", {0.001, 0.00001});
  store.keep("laptop", {0.004, 0.0006});
  EXPECT_EQ(SpeedStore(file_).find("laptop"), (plan::Affine{0.004, 0.0006}));
  EXPECT_EQ(SpeedStore(file_).find("desktop"), (plan::Affine{0.001, 0.00001}));
}

TEST_F(SpeedStoreTest, ADamagedFileIsAnEmptyOne) {
  std::filesystem::create_directories(file_.parent_path());
  for (const char* text : {"", "{", "[1]", R"({"laptop": 3})", R"({"laptop": {"fixed_s": -1, "per_sample_s": 1}})",
                           R"({"laptop": {"fixed_s": 1, "per_sample_s": 0}})", R"({"laptop": {"fixed_s": "x"}})"}) {
    std::ofstream(file_) << text;
    EXPECT_FALSE(SpeedStore(file_).find("laptop")) << text;
  }
  SpeedStore(file_).keep("laptop", {1, 2});
  EXPECT_TRUE(SpeedStore(file_).find("laptop"));
}

TEST_F(SpeedStoreTest, StaysSmall) {
  const SpeedStore store(file_);
  for (int i = 0; i < 300; ++i) store.keep("device " + std::to_string(i), {0, 1});
  EXPECT_FALSE(store.find("device 0"));
  EXPECT_TRUE(store.find("device 299"));
}

TEST_F(SpeedStoreTest, WithoutAPathNothingIsKept) {
  const SpeedStore store({});
  store.keep("laptop", {1, 2});
  EXPECT_FALSE(store.find("laptop"));
}

}  // namespace
}  // namespace motley::runtime
