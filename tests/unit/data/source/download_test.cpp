#include "data/source/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;
using test::Directory;
using ::testing::HasSubstr;

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Download : public ::testing::Test {
 protected:
  const Bytes content_ = bytes_of_text("what was published");
  const RemoteFile file_{"file.gz", test::digest_of(content_)};
  Directory directory_;
  const std::string cache_ = directory_.path() + "/cache/deep";
};

TEST_F(Download, PutsAFileInItsPlace) {
  directory_.write("origin/file.gz", content_);
  ASSERT_TRUE(
      fetch(test::from_files(), {"file://" + directory_.path() + "/origin/"}, file_, cache_, test::digest_of, {}));
  EXPECT_EQ(test::read_text(cache_ + "/file.gz"), "what was published");
  EXPECT_EQ(names_in(cache_), std::vector<std::string>{"file.gz"});
}

TEST_F(Download, DeletesAFileWithAnotherHashAndSaysSo) {
  directory_.write("origin/file.gz", bytes_of_text("something else"));
  const Status status =
      fetch(test::from_files(), {"file://" + directory_.path() + "/origin/"}, file_, cache_, test::digest_of, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::network);
  EXPECT_THAT(status.error().message, HasSubstr("expected SHA-256 " + file_.sha256));
  EXPECT_THAT(status.error().message, HasSubstr("deleted"));
  EXPECT_THAT(status.error().hint, HasSubstr(cache_));
  EXPECT_TRUE(names_in(cache_).empty());
}

TEST_F(Download, SaysWhereItFoundNothing) {
  const Status status =
      fetch(test::from_files(), {"file://" + directory_.path() + "/nowhere/"}, file_, cache_, test::digest_of, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::network);
  EXPECT_THAT(status.error().message, HasSubstr("/nowhere/file.gz"));
  EXPECT_TRUE(names_in(cache_).empty());
}

TEST_F(Download, TriesTheNextAddress) {
  directory_.write("mirror/file.gz", content_);
  const std::string base = "file://" + directory_.path();
  EXPECT_TRUE(fetch(test::from_files(), {base + "/nowhere/", base + "/mirror/"}, file_, cache_, test::digest_of, {}));
  EXPECT_FALSE(fetch(test::from_files(), {}, file_, cache_, test::digest_of, {}));
}

TEST_F(Download, NamesADirectoryItCannotMake) {
  directory_.write("in-the-way", {});
  const Status status =
      fetch(test::from_files(), {"file:///"}, file_, directory_.path() + "/in-the-way/cache", test::digest_of, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::io);
}

TEST_F(Download, ReportsHowFarItIs) {
  directory_.write("origin/file.gz", content_);
  std::uint64_t last_done = 0, last_total = 0;
  const auto progress = [&](const std::string& file, std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(file, "file.gz");
    EXPECT_GT(done, last_done);
    last_done = done;
    last_total = total;
  };
  const std::string base = "file://" + directory_.path() + "/origin/";
  ASSERT_TRUE(fetch(test::from_files(), {base}, file_, cache_, test::digest_of, progress));
  EXPECT_EQ(last_done, content_.size());
  EXPECT_EQ(last_total, content_.size());
}

}  // namespace
}  // namespace motley::data
