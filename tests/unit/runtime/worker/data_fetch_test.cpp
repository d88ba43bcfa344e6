// The files of data.uri, from the head that opened them to a machine that has none.

#include "runtime/worker/data_fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
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
    return std::make_unique<DataFetch>(
        token_, "there", transport::Identity{}, home_,
        DataFetch::Told{.progress = [this](std::uint64_t done, std::uint64_t) { came_ = done; },
                        .note = [this](const std::string& text) { notes_ += text; }});
  }
  /// One that has run.
  static Status run(DataFetch& fetch) {
    const Status begun = fetch.begin();
    return begun ? fetch.fill() : begun;
  }
  std::unique_ptr<DataFetch> fetched() {
    std::unique_ptr<DataFetch> made = fetch();
    const Status ran = run(*made);
    EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
    return made;
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
  std::string notes_;
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
    const std::unique_ptr<DataFetch> got = fetched();
    const KeptSet& set = got->set();
    const Result<std::string> here = uri_here(set, uri, "train");
    ASSERT_TRUE(here) << message(here);
    EXPECT_EQ(*here, "text:" + (set.path() / "train/book").string());
    EXPECT_EQ(content_of(set.path() / "train/book"), text);
    EXPECT_FALSE(uri_here(set, uri, "test"));
    EXPECT_EQ(came_, text.size());
  }
  came_ = 0;
  const std::unique_ptr<DataFetch> again = fetched();
  EXPECT_TRUE(again->was_whole());
  EXPECT_EQ(came_, 0U) << "it is here";
}

TEST_F(DataFetchTest, WhatWasCutOffGoesOnAndADamagedBlockComesAgain) {
  const std::string text = long_text(20 * wire::kBlockBytesMax + 1) + std::string(3 * wire::kBlockBytesMax, 'x');
  const std::string uri = write("book.txt", text).string();
  begin(uri, "");
  fs::path file, whole;
  {
    const std::unique_ptr<DataFetch> got = fetched();
    file = got->set().path() / "train/book.txt";
    whole = got->set().path().parent_path().parent_path() / "whole";
  }
  fs::permissions(file, fs::perms::owner_all);
  std::string damaged = text.substr(0, 5 * wire::kBlockBytesMax + 9);
  damaged[4 * wire::kBlockBytesMax] ^= 1;
  spill(file, damaged);
  EXPECT_TRUE(fs::exists(whole));
  const std::unique_ptr<DataFetch> got = fetched();
  EXPECT_EQ(content_of(file), text);
  EXPECT_TRUE(fs::exists(whole));
}

TEST_F(DataFetchTest, ImagesAndLabelsAndADirectoryAreWhatTheyWere) {
  const std::string x = write("a/x.npy", "images").string(), y = write("b/x.npy", "labels").string();
  const fs::path digits = write("digits/t10k-images-idx3-ubyte", "i").parent_path();
  write("digits/t10k-labels-idx1-ubyte", "l");
  write("digits/secret", "not data");
  begin(x + "+" + y, digits.string());
  const std::unique_ptr<DataFetch> got = fetched();
  const KeptSet* const set = &got->set();
  const Result<std::string> pair = uri_here(*set, x + "+" + y, "train"), all = uri_here(*set, digits.string(), "test");
  ASSERT_TRUE(pair && all);
  EXPECT_EQ(*pair, (set->path() / "train/images/x.npy").string() + "+" + (set->path() / "train/labels/x.npy").string());
  EXPECT_EQ(*all, (set->path() / "test").string());
  EXPECT_EQ(content_of(set->path() / "train/labels/x.npy"), "labels");
  EXPECT_TRUE(fs::exists(set->path() / "test/t10k-images-idx3-ubyte"));
  EXPECT_FALSE(fs::exists(set->path() / "test/secret")) << "nobody reads it";
}

TEST_F(DataFetchTest, IsReadWhileItComes) {
  const std::string text = long_text(40 * wire::kBlockBytesMax + 5);
  begin(write("book.txt", text).string(), "");
  const std::unique_ptr<DataFetch> comes = fetch();
  const Status begun = comes->begin();
  ASSERT_TRUE(begun) << begun.error().message;
  ASSERT_FALSE(comes->was_whole());
  const fs::path path = comes->set().path() / "train/book.txt";
  const Result<std::shared_ptr<const data::Source>> source = comes->open(path.string());
  ASSERT_TRUE(source) << message(source);
  EXPECT_TRUE((*source)->comes());
  EXPECT_EQ((*source)->size(), text.size());
  const Result<SharedBytes> view = (*source)->view();
  ASSERT_TRUE(view) << message(view);
  const std::uint64_t at = 30 * wire::kBlockBytesMax - 3;
  EXPECT_FALSE((*source)->is_here(at, 6)) << "nothing is, before fill()";
  Status filled;
  std::thread beside([&] { filled = comes->fill(); });
  const Result<SharedBytes> read = (*source)->read(at, 6);
  const std::span<const std::byte> seen = view->bytes().subspan(at, 6);
  beside.join();
  ASSERT_TRUE(filled) << filled.error().message;
  ASSERT_TRUE(read) << message(read);
  EXPECT_TRUE(std::ranges::equal(read->bytes(), std::as_bytes(std::span(text)).subspan(at, 6)));
  EXPECT_TRUE(std::ranges::equal(seen, read->bytes()));
  EXPECT_EQ(content_of(path), text);
}

TEST_F(DataFetchTest, WhoWaitsHearsWhyNothingMoreComes) {
  begin(write("book.txt", long_text(3 * wire::kBlockBytesMax)).string(), "");
  const std::unique_ptr<DataFetch> comes = fetch();
  ASSERT_TRUE(comes->begin());
  const Result<std::shared_ptr<const data::Source>> source =
      comes->open((comes->set().path() / "train/book.txt").string());
  ASSERT_TRUE(source) << message(source);
  comes->stop();
  EXPECT_FALSE(comes->fill());
  const Status waited = (*source)->wait(0, 1);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::interrupted);
}

TEST_F(DataFetchTest, AnotherOneOfTheMachineWaitsAndFetchesNothing) {
  const std::string text = long_text(9 * wire::kBlockBytesMax);
  begin(write("book.txt", text).string(), "");
  const std::unique_ptr<DataFetch> first = fetch(), second = fetch();
  ASSERT_TRUE(first->begin());
  Status waited;
  std::thread beside([&] { waited = second->begin(); });
  const Status filled = first->fill();
  beside.join();
  ASSERT_TRUE(filled && waited);
  EXPECT_TRUE(second->was_whole());
  EXPECT_EQ(content_of(second->set().path() / "train/book.txt"), text);
}

TEST_F(DataFetchTest, AnotherOneOfTheMachineGoesOnWhereTheFirstOneStopped) {
  const std::string text = long_text(9 * wire::kBlockBytesMax);
  begin(write("book.txt", text).string(), "");
  std::unique_ptr<DataFetch> first = fetch();
  const std::unique_ptr<DataFetch> second = fetch();
  ASSERT_TRUE(first->begin());
  Status ran;
  std::thread beside([&] { ran = run(*second); });
  first->stop();
  EXPECT_FALSE(first->fill());
  first.reset();
  beside.join();
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_FALSE(second->was_whole());
  EXPECT_EQ(content_of(second->set().path() / "train/book.txt"), text);
}

// What an address has, there at once.
class FileOrigin final : public Origin {
 public:
  FileOrigin(std::string content, std::shared_ptr<BlockFetch> fetch, std::size_t* asked)
      : content_(std::move(content)), fetch_(std::move(fetch)), asked_(asked) {
    fetch_->origin_opens();
  }
  void ask(std::size_t file, std::uint64_t offset, const blocks::Sources::Open& block) override {
    EXPECT_EQ(file, 0U);
    ++*asked_;
    const auto content = std::as_bytes(std::span(content_)).subspan(offset, block.bytes);
    fetch_->origin_brings(block.hash, {content.begin(), content.end()});
  }

 private:
  std::string content_;
  std::shared_ptr<BlockFetch> fetch_;
  std::size_t* asked_;
};

TEST_F(DataFetchTest, BlocksComeFromTheAddressToo) {
  const std::string text = long_text(40 * wire::kBlockBytesMax + 5);
  begin(write("book.txt", text).string(), "");
  const std::unique_ptr<DataFetch> comes = fetch();
  ASSERT_TRUE(comes->begin());
  std::size_t asked = 0;
  const auto open = [&](const std::vector<OriginFile>& files, const std::vector<std::string>& allowed,
                        std::shared_ptr<BlockFetch> link) -> Result<std::unique_ptr<Origin>> {
    EXPECT_EQ(files.at(0).address, "https://there/book.txt");
    EXPECT_EQ(files.at(0).size, text.size());
    EXPECT_EQ(allowed, std::vector<std::string>{"public"});
    return std::unique_ptr<Origin>(std::make_unique<FileOrigin>(text, std::move(link), &asked));
  };
  const std::vector<std::string> addresses = addresses_of(comes->set(), "text:https://there/book.txt", "", "test");
  ASSERT_TRUE(comes->use_origin(addresses, {"public"}, open));
  const Status filled = comes->fill();
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_EQ(content_of(comes->set().path() / "train/book.txt"), text);
  EXPECT_GT(asked, 0U);
  EXPECT_NE(notes_.find("came from their address"), std::string::npos) << notes_;
}

TEST_F(DataFetchTest, AWrongBlockOfTheAddressIsNeverUsed) {
  const std::string text = long_text(40 * wire::kBlockBytesMax + 5);
  begin(write("book.txt", text).string(), "");
  const std::unique_ptr<DataFetch> comes = fetch();
  ASSERT_TRUE(comes->begin());
  std::size_t asked = 0;
  const auto open = [&](const std::vector<OriginFile>&, const std::vector<std::string>&,
                        std::shared_ptr<BlockFetch> link) -> Result<std::unique_ptr<Origin>> {
    return std::unique_ptr<Origin>(
        std::make_unique<FileOrigin>(std::string(text.size(), 'x'), std::move(link), &asked));
  };
  ASSERT_TRUE(comes->use_origin({"https://there/book.txt"}, {"public"}, open));
  const Status filled = comes->fill();
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_EQ(content_of(comes->set().path() / "train/book.txt"), text);
  EXPECT_GT(asked, 0U);
  EXPECT_NE(notes_.find("another content"), std::string::npos) << notes_;
}

TEST_F(DataFetchTest, AddressesAreThoseOfTheFiles) {
  const std::string x = write("a/x.npy", "images").string(), y = write("b/y.npy", "labels").string();
  begin(x + "+" + y, write("test.motley", "test").string());
  const std::unique_ptr<DataFetch> got = fetched();
  const std::string pair = "https://there/x.npy+https://there/y.npy", test = "http://other/test.motley";
  EXPECT_EQ(addresses_of(got->set(), pair, test, "test"),
            (std::vector<std::string>{"https://there/x.npy", "https://there/y.npy", test}));
  EXPECT_TRUE(addresses_of(got->set(), pair, "/here/test.motley", "test").empty()) << "one has none";
  EXPECT_TRUE(addresses_of(got->set(), "s3://b/x.npy+s3://b/y.npy", test, "test").empty());
  EXPECT_TRUE(addresses_of(got->set(), "https://there/both.npy", test, "test").empty()) << "one for two files";
}

TEST_F(DataFetchTest, TheHeadSaysWhatTheDataAre) {
  const std::string uri = write("book.txt", long_text(4000)).string();
  const Result<std::shared_ptr<const data::Dataset>> set = data::open_dataset("text:" + uri, "train", {});
  ASSERT_TRUE(set) << message(set);
  Result<std::shared_ptr<Offers>> offers = offer_data("text:" + uri, "", set->get());
  ASSERT_TRUE(offers) << message(offers);
  begin(std::move(*offers));
  const std::unique_ptr<DataFetch> got = fetched();
  EXPECT_EQ(got->train_fingerprint(), (*set)->fingerprint());
  EXPECT_EQ(got->test_fingerprint(), "");
}

TEST_F(DataFetchTest, AHeadWithoutFilesSaysSo) {
  const Result<std::shared_ptr<Offers>> none = offer_data("synthetic:96:8:4", "fashion-mnist");
  ASSERT_TRUE(none && *none == nullptr);
  begin(nullptr);
  const std::unique_ptr<DataFetch> asks = fetch();
  EXPECT_FALSE(run(*asks));
  EXPECT_TRUE(asks->offers_none());
}

TEST_F(DataFetchTest, WhoStopsGetsAnAnswer) {
  begin(write("book.txt", "a text").string(), "");
  listener_->close();
  const std::unique_ptr<DataFetch> asks = fetch();
  asks->stop();
  const Status ran = run(*asks);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::interrupted);
}

TEST_F(DataFetchTest, SetsThatNobodyUsesMakeRoom) {
  const fs::path old = home_ / "sets/old";
  for (const char* name : {"uses", "tree"}) fs::create_directories(old / name);
  spill(old / "used", "");
  begin(write("book.txt", "a text").string(), "");
  const std::unique_ptr<DataFetch> got = fetched();
  EXPECT_TRUE(fs::exists(old)) << "there is room";
}

}  // namespace
}  // namespace motley::runtime::test
