#include "data/named.h"

#include <gtest/gtest.h>

#include "fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::Directory;

class Named : public ::testing::Test {
 protected:
  NamedDataset toy_dataset() const {
    const Bytes images = test::gzip(test::idx({2, 1, 1}, test::from_hex("0102")));
    const Bytes labels = test::gzip(test::idx({2}, test::from_hex("0001")));
    directory_.write("origin/train-images-idx3-ubyte.gz", images);
    directory_.write("origin/train-labels-idx1-ubyte.gz", labels);
    return {"toy",
            {directory_.path() + "/system"},
            {"file://" + directory_.path() + "/origin/"},
            {"train-images-idx3-ubyte.gz", test::digest_of(images)},
            {"train-labels-idx1-ubyte.gz", test::digest_of(labels)},
            {"t10k-images-idx3-ubyte.gz", test::digest_of(images)},
            {"t10k-labels-idx1-ubyte.gz", test::digest_of(labels)}};
  }

  Directory directory_;
  const std::string cache_ = directory_.path() + "/cache";
};

TEST_F(Named, DownloadsOnceIntoTheCache) {
  NamedDataset toy = toy_dataset();
  const OpenOptions options{{}, cache_, test::digest_of, {}, test::from_files()};
  const auto fetched = find_or_fetch(toy, "train", options);
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_EQ(fetched->images, cache_ + "/toy/train-images-idx3-ubyte.gz");
  toy.base_urls.clear();
  EXPECT_TRUE(find_or_fetch(toy, "train", options));
  EXPECT_FALSE(find_or_fetch(toy, "test", options));
}

TEST_F(Named, PrefersWhatTheSystemHas) {
  const NamedDataset toy = toy_dataset();
  directory_.write("system/train-images-idx3-ubyte.gz", {});
  directory_.write("system/train-labels-idx1-ubyte.gz", {});
  const auto found = find_or_fetch(toy, "train", {{}, cache_, test::digest_of, {}, test::from_files()});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->labels, directory_.path() + "/system/train-labels-idx1-ubyte.gz");
}

TEST_F(Named, SaysWhereTheFilesGoWhereNothingDownloads) {
  const auto found = find_or_fetch(toy_dataset(), "train", {{}, cache_, test::digest_of, {}, {}});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::input);
  EXPECT_NE(found.error().message.find(cache_ + "/toy"), std::string::npos);
}

TEST_F(Named, NeedsADirectoryToDownloadTo) {
  const auto found = find_or_fetch(toy_dataset(), "train", {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::input);
}

TEST_F(Named, KnowsThePublishedDataSets) {
  for (const NamedDataset& known : named_datasets()) {
    EXPECT_FALSE(known.base_urls.empty());
    for (const std::string& url : known.base_urls) EXPECT_EQ(url.back(), '/');
    for (const RemoteFile* file : {&known.train_images, &known.train_labels, &known.test_images, &known.test_labels}) {
      EXPECT_EQ(file->sha256.size(), 64U);
    }
  }
}

}  // namespace
}  // namespace motley::data
