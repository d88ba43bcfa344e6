// The files of data.uri, from the head that opened them to a machine that has none.

#include "runtime/worker/data_fetch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "../hosts_scene.h"
#include "runtime/head/data_offer.h"
#include "wire/limits.h"

namespace motley::runtime::test {
namespace {

namespace fs = std::filesystem;
using store::test::spill;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string long_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 1000);
  return text;
}

class DataFetchTest : public testing::Test {
 protected:
  ~DataFetchTest() override {
    if (listener_) listener_->close();
  }
  /// A head that trains on these.
  void begin(const std::string& train, const std::string& test) {
    Result<std::shared_ptr<Offers>> offers = offer_data(train, test);
    ASSERT_TRUE(offers) << message(offers);
    begin(std::move(*offers));
  }
  void begin(std::shared_ptr<Offers> offers) {
    scene_ = std::make_unique<Scene>(SceneSettings{.min_workers = 1, .offers = std::move(offers)});
    listener_ = begin_behind(*scene_, tcp_, token_);
  }
  std::unique_ptr<DataFetch> fetch() {
    return std::make_unique<DataFetch>(token_, "there", transport::Identity{}, home_,
                                       [this](std::uint64_t done, std::uint64_t) { came_ = done; });
  }
  KeptSet fetched() {
    Result<KeptSet> got = fetch()->run();
    EXPECT_TRUE(got) << message(got);
    return std::move(*got);
  }
  fs::path write(const std::string& name, const std::string& content) {
    const fs::path path = dir_ / name;
    fs::create_directories(path.parent_path());
    spill(path, content);
    return path;
  }

  TemporaryDirectory dir_;
  const fs::path home_ = dir_ / "home";
  std::uint64_t came_ = 0;
  fleet::JoinToken token_;
  std::unique_ptr<Scene> scene_;
  transport::Tcp tcp_{{.plaintext = true, .identity = {}}};
  std::unique_ptr<transport::Listener> listener_;
};

TEST_F(DataFetchTest, ATextComesAndIsKept) {
  const std::string text = long_text(2 * wire::kBlockBytesMax + 77);
  const std::string uri = "text:" + write("book", text).string();
  begin(uri, uri);
  {
    const KeptSet set = fetched();
    const Result<std::string> here = uri_here(set, uri, "train");
    ASSERT_TRUE(here) << message(here);
    EXPECT_EQ(*here, "text:" + (set.path() / "train/book").string());
    EXPECT_EQ(content_of(set.path() / "train/book"), text);
    EXPECT_FALSE(uri_here(set, uri, "test"));
    EXPECT_EQ(came_, text.size());
  }
  came_ = 0;
  const KeptSet again = fetched();
  EXPECT_EQ(came_, 0U) << "it is here";
}

TEST_F(DataFetchTest, WhatWasCutOffGoesOnAndADamagedBlockComesAgain) {
  const std::string text = long_text(20 * wire::kBlockBytesMax + 1) + std::string(3 * wire::kBlockBytesMax, 'x');
  const std::string uri = write("book.txt", text).string();
  begin(uri, "");
  fs::path file, whole;
  {
    const KeptSet got = fetched();
    file = got.path() / "train/book.txt";
    whole = got.path().parent_path().parent_path() / "whole";
  }
  fs::permissions(file, fs::perms::owner_all);
  std::string damaged = text.substr(0, 5 * wire::kBlockBytesMax + 9);
  damaged[4 * wire::kBlockBytesMax] ^= 1;
  spill(file, damaged);
  EXPECT_TRUE(fs::exists(whole));
  const KeptSet got = fetched();
  EXPECT_EQ(content_of(file), text);
  EXPECT_TRUE(fs::exists(whole));
}

TEST_F(DataFetchTest, ImagesAndLabelsAndADirectoryAreWhatTheyWere) {
  const std::string x = write("a/x.npy", "images").string(), y = write("b/x.npy", "labels").string();
  const fs::path digits = write("digits/t10k-images-idx3-ubyte", "i").parent_path();
  write("digits/t10k-labels-idx1-ubyte", "l");
  write("digits/secret", "not data");
  begin(x + "+" + y, digits.string());
  const KeptSet set = fetched();
  const Result<std::string> pair = uri_here(set, x + "+" + y, "train"), all = uri_here(set, digits.string(), "test");
  ASSERT_TRUE(pair && all);
  EXPECT_EQ(*pair, (set.path() / "train/images/x.npy").string() + "+" + (set.path() / "train/labels/x.npy").string());
  EXPECT_EQ(*all, (set.path() / "test").string());
  EXPECT_EQ(content_of(set.path() / "train/labels/x.npy"), "labels");
  EXPECT_TRUE(fs::exists(set.path() / "test/t10k-images-idx3-ubyte"));
  EXPECT_FALSE(fs::exists(set.path() / "test/secret")) << "nobody reads it";
}

TEST_F(DataFetchTest, WhatAnotherOneOfTheMachineBeganIsWaitedForAndGoneOnWith) {
  const std::string text = long_text(9 * wire::kBlockBytesMax);
  begin(write("book.txt", text).string(), "");
  std::optional<KeptSet> first = fetched();
  const fs::path file = first->path() / "train/book.txt";
  fs::remove(first->path().parent_path().parent_path() / "whole");
  fs::permissions(file, fs::perms::owner_all);
  fs::resize_file(file, 4 * wire::kBlockBytesMax);
  const Result<bool> ours = first->take();
  ASSERT_TRUE(ours && *ours);
  came_ = 0;
  std::optional<Result<KeptSet>> second;
  std::thread beside([&] { second = fetch()->run(); });
  first.reset();
  beside.join();
  ASSERT_TRUE(*second) << message(*second);
  EXPECT_EQ(came_, text.size());
  EXPECT_EQ(content_of(file), text);
}

TEST_F(DataFetchTest, AHeadWithoutFilesSaysSo) {
  const Result<std::shared_ptr<Offers>> none = offer_data("synthetic:96:8:4", "fashion-mnist");
  ASSERT_TRUE(none && *none == nullptr);
  begin(nullptr);
  const std::unique_ptr<DataFetch> asks = fetch();
  EXPECT_FALSE(asks->run());
  EXPECT_TRUE(asks->offers_none());
}

TEST_F(DataFetchTest, WhoStopsGetsAnAnswer) {
  begin(write("book.txt", "a text").string(), "");
  listener_->close();
  const std::unique_ptr<DataFetch> asks = fetch();
  asks->stop();
  const Result<KeptSet> ran = asks->run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::interrupted);
}

TEST_F(DataFetchTest, SetsThatNobodyUsesMakeRoom) {
  const fs::path old = home_ / "sets/old";
  for (const char* name : {"uses", "tree"}) fs::create_directories(old / name);
  spill(old / "used", "");
  begin(write("book.txt", "a text").string(), "");
  const KeptSet got = fetched();
  EXPECT_TRUE(fs::exists(old)) << "there is room";
}

}  // namespace
}  // namespace motley::runtime::test
