#include "runtime/worker/offered_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

class OfferedDataTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(base / "data" / "deep");
    fs::create_directories(base / "data-of-others");
    fs::create_symlink(base / "data-of-others", base / "data" / "away");
  }
  void TearDown() override { fs::remove_all(base); }
  static Status asked_for(const std::string& train, const OfferedData& offered, const std::string& test = "") {
    config::RunConfig config;
    config.data_uri = train;
    config.data_test_uri = test;
    return check_offered(config, offered);
  }
  std::string file(const std::string& name) const { return (base / name).string(); }

  fs::path base = fs::path(testing::TempDir()) / ("motley-offered-" + std::to_string(getpid()));
  OfferedData offered{.directories = {(base / "data").string()}};
};

TEST_F(OfferedDataTest, NamedAndMadeUpDataNeedNoOffer) {
  for (const char* uri : {"fashion-mnist", "mnist", "synthetic:100:4:2"})
    EXPECT_TRUE(asked_for(uri, {}, uri).ok()) << uri;
}

TEST_F(OfferedDataTest, TheSetsOfAScriptNeedNoOffer) {
  config::RunConfig config;
  config.model_kind = config::kScriptKind;
  config.data_uri = config.data_test_uri = config::kScriptKind;
  EXPECT_TRUE(check_offered(config, {}).ok());
  config.data_test_uri = "/etc/passwd";
  EXPECT_FALSE(check_offered(config, {}).ok());
}

TEST_F(OfferedDataTest, AFileThatWasNotOfferedIsNotOpened) {
  for (const std::string& uri : {std::string("text:/etc/passwd"), std::string("/etc/passwd"), std::string("notes.txt"),
                                 std::string("set.motley"), std::string("nothing-known"), file("data/x.npy"),
                                 file("data/x.npy") + "+" + file("data/y.npy")}) {
    const Status refused = asked_for(uri, {});
    ASSERT_FALSE(refused.ok()) << uri;
    EXPECT_EQ(refused.error().code, ErrorCode::input);
    EXPECT_NE(refused.error().hint.find("--data-dir"), std::string::npos);
    EXPECT_FALSE(asked_for("synthetic:100:4:2", {}, uri).ok()) << uri;
  }
}

TEST_F(OfferedDataTest, WhatLiesBelowAnOfferedDirectoryIs) {
  for (const std::string& uri : {file("data/x.npy"), "text:" + file("data/deep/book"),
                                 file("data/x.npy+") + file("data/y.npy"), file("data"), file("data/deep/../x.npy")}) {
    EXPECT_TRUE(asked_for(uri, offered).ok()) << uri;
    EXPECT_TRUE(asked_for(uri, {.directories = {file("other"), file("data/")}}).ok()) << uri;
    EXPECT_TRUE(asked_for(uri, {.directories = {base.root_path().string()}}).ok()) << uri;
  }
}

TEST_F(OfferedDataTest, WaysOutOfItAreSeen) {
  for (const std::string& uri :
       {file("data-of-others/x.npy"), file("data/../secret.npy"), "text:" + file("data/away/x"),
        file("data/x.npy+") + file("data-of-others/y.npy"), file("data-of-others/x.npy+") + file("data/y.npy")}) {
    EXPECT_FALSE(asked_for(uri, offered).ok()) << uri;
  }
}

TEST_F(OfferedDataTest, TheUsersOwnWordsStand) {
  const OfferedData mine{.overrides = {"data.uri=text:/etc/passwd"}};
  EXPECT_TRUE(asked_for("text:/etc/passwd", mine).ok());
  EXPECT_FALSE(asked_for("text:/etc/passwd", mine, "text:/etc/passwd").ok());
}

}  // namespace
}  // namespace motley::runtime
