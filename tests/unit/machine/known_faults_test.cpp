#include "machine/known_faults.h"

#include <gtest/gtest.h>

namespace motley::machine {
namespace {

TEST(KnownFaults, VersionsOfMacOsThatAreKnownToBeWrongHaveTheirThread) {
  ASSERT_EQ(known_faults_of_mps("macOS 26.2", "25C56", "").size(), 1U);
  EXPECT_NE(known_faults_of_mps("macOS 26.2", "25C56", "")[0].what.find("pytorch/issues/180201"), std::string::npos);
  EXPECT_EQ(known_faults_of_mps("macOS 26.2.1", "25C60", "").size(), 1U);
  EXPECT_EQ(known_faults_of_mps("macOS 26.3", "25D125", "").size(), 1U);
  const std::vector<KnownFault> beta = known_faults_of_mps("macOS 27.0", "26A5279m", "");
  ASSERT_EQ(beta.size(), 1U);
  EXPECT_NE(beta[0].what.find("beta 26A5279m"), std::string::npos);
}

TEST(KnownFaults, NothingIsSaidOfOtherVersions) {
  for (const char* version : {"macOS 15.7", "macOS 26.1", "macOS 26.4", "macOS 26.20", "macOS 2.6", "macOS "})
    EXPECT_TRUE(known_faults_of_mps(version, "25E246", "0.32.0").empty()) << version;
  EXPECT_TRUE(known_faults_of_mps("macOS 27.0", "26A300", "").empty()) << "released";
  EXPECT_TRUE(known_faults_of_mps("Debian GNU/Linux 12 (bookworm)", "Linux 6.1", "0.29.0").empty());
  EXPECT_TRUE(known_faults_of_mps("Windows 10.0.26100", "", "0.29.0").empty());
}

TEST(KnownFaults, MlxIsRightFrom32On) {
  for (const char* wrong : {"0.29.3", "0.31.1", "0.9"}) {
    ASSERT_EQ(known_faults_of_mps("macOS 26.4", "25E246", wrong).size(), 1U) << wrong;
    EXPECT_NE(known_faults_of_mps("macOS 26.4", "25E246", wrong)[0].what.find("mlx/issues/3630"), std::string::npos);
  }
  for (const char* right : {"0.32.0", "0.40.1", "1.0.0", ""})
    EXPECT_TRUE(known_faults_of_mps("macOS 26.4", "25E246", right).empty()) << right;
}

}  // namespace
}  // namespace motley::machine
