// Data sets over a source whose bytes come while they are used.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <map>
#include <type_traits>
#include <vector>

#include "../fixtures.h"
#include "base/little_endian.h"
#include "data/dataset.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;
using test::from_hex;
using test::idx;
using test::npy;
using ::testing::Each;
using ::testing::ElementsAre;

// What is waited for comes at once; what is only looked at is noted.
class Coming final : public test::Memory {
 public:
  Coming(std::string name, const Bytes& bytes) : Memory(std::move(name), bytes), here_(bytes.size()) {}
  [[nodiscard]] Result<SharedBytes> read(std::uint64_t offset, std::uint64_t count) const override {
    if (Status came = wait(offset, count); !came) return came.error();
    return Memory::read(offset, count);
  }
  [[nodiscard]] Result<SharedBytes> view() const override { return SharedBytes(nullptr, bytes()); }
  [[nodiscard]] bool comes() const override { return true; }
  [[nodiscard]] bool is_here(std::uint64_t offset, std::uint64_t count) const override {
    for (std::uint64_t i = 0; i < count; ++i)
      if (!here_[offset + i]) return false;
    return true;
  }
  [[nodiscard]] Status wait(std::uint64_t offset, std::uint64_t count) const override {
    if (broken_) return Error{ErrorCode::network, "the cable is out", ""};
    for (std::uint64_t i = 0; i < count; ++i) here_[offset + i] = true;
    return {};
  }
  void cut() { broken_ = true; }
  [[nodiscard]] std::uint64_t came() const {
    std::uint64_t count = 0;
    for (const bool here : here_) count += here ? 1 : 0;
    return count;
  }

 private:
  mutable std::vector<bool> here_;
  bool broken_ = false;
};

class ComingData : public testing::Test {
 protected:
  void add(const std::string& name, const Bytes& bytes) {
    sources_[name] = std::make_shared<Coming>(directory_.write(name, bytes), bytes);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return directory_.path() + "/" + name; }
  std::shared_ptr<const Dataset> open(const std::string& uri, bool early) {
    OpenOptions options;
    options.block = 4;
    if (early) {
      options.fingerprint = "as the head says";
      options.open = [this](const std::string& path) -> Result<std::shared_ptr<const Source>> {
        return std::shared_ptr<const Source>(sources_.at(std::filesystem::path(path).filename().string()));
      };
    }
    auto set = open_dataset(uri, "train", options);
    EXPECT_TRUE(set) << (set ? "" : set.error().message);
    return set ? *set : nullptr;
  }
  /// The set, opened with the samples in `name` to come: they come when they are waited for, and are what they are.
  std::shared_ptr<const Dataset> expect_to_come(const std::string& uri, const std::string& name) {
    const auto early = open(uri, true), whole = open(uri, false);
    if (!early || !whole) return nullptr;
    EXPECT_TRUE(early->comes());
    EXPECT_EQ(early->fingerprint(), "as the head says");
    EXPECT_FALSE(whole->comes());
    EXPECT_EQ(early->size(), whole->size());
    EXPECT_EQ(early->classes(), whole->classes());
    EXPECT_EQ(early->sample_shape(), whole->sample_shape());
    EXPECT_TRUE(whole->is_here(1) && whole->wait(std::vector<std::uint64_t>{1}));
    EXPECT_FALSE(early->is_here(early->size() - 1));
    const std::vector<std::uint64_t> some{early->size() - 1, 0};
    EXPECT_TRUE(early->wait(some));
    EXPECT_TRUE(early->is_here(early->size() - 1));
    EXPECT_LT(sources_.at(name)->came(), sources_.at(name)->size()) << "the others are not waited for";
    std::uint64_t elements = 1;
    for (const std::int64_t extent : whole->sample_shape()) elements *= static_cast<std::uint64_t>(extent);
    std::vector<float> a(elements * 2), b(elements * 2);
    early->gather(some, a);
    whole->gather(some, b);
    EXPECT_EQ(a, b);
    return early;
  }

  template <class T>
  void expect_converted(const std::string& type);

  test::Directory directory_;
  std::map<std::string, std::shared_ptr<Coming>> sources_;
};

Bytes numbers(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

// Larger than what is read of any array for its header.
constexpr unsigned kMany = 1 << 17;

TEST_F(ComingData, AnIdxPair) {
  add("x", idx({kMany, 2, 2}, numbers(kMany * 4)));
  add("y", idx({kMany}, numbers(kMany)));
  expect_to_come(at("x") + "+" + at("y"), "x");
  EXPECT_EQ(sources_["y"]->came(), sources_["y"]->size()) << "of targets all are read";
}

TEST_F(ComingData, AnNpyPair) {
  add("x.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (131072, 3)}", numbers(kMany * 3)));
  add("y.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (131072,)}", numbers(kMany)));
  expect_to_come(at("x.npy") + "+" + at("y.npy"), "x.npy");
}

TEST_F(ComingData, AText) {
  add("book.txt", numbers(1001));
  const auto set = expect_to_come("text:" + at("book.txt"), "book.txt");
  ASSERT_NE(set, nullptr);
  std::vector<std::int64_t> y(4);
  set->gather_classes(std::vector<std::uint64_t>{0}, y);
  EXPECT_THAT(y, ElementsAre(7, 14, 21, 28));
  EXPECT_EQ(sources_["book.txt"]->came(), 10U) << "two samples, and the byte behind each";
}

// Of a type that is converted: elements from -3 on, and the targets 0, 1, 2, 3, 0, ...
template <class T>
void ComingData::expect_converted(const std::string& type) {
  Bytes bytes(kMany * 2 * sizeof(T));
  for (std::size_t i = 0; i < std::size_t{kMany} * 2; ++i) {
    using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    store_le(&bytes[i * sizeof(T)], std::bit_cast<Word>(static_cast<T>(static_cast<T>(i) - 3)));
  }
  Bytes targets(kMany);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<std::byte>(i % 4);
  add("x.npy", npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (131072, 2)}", bytes));
  add("y.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (131072,)}", targets));
  const auto set = expect_to_come(at("x.npy") + "+" + at("y.npy"), "x.npy");
  ASSERT_NE(set, nullptr);
  std::vector<float> x(4);
  set->gather(std::vector<std::uint64_t>{0, kMany - 1}, x);
  EXPECT_THAT(x, ElementsAre(-3, -2, 2 * kMany - 5.0F, 2 * kMany - 4.0F));
}

TEST_F(ComingData, OtherTypesAreConvertedOnceTheyCame) {
  expect_converted<std::int32_t>("<i4");
  expect_converted<std::int64_t>("<i8");
  expect_converted<double>("<f8");
}

TEST_F(ComingData, TruthValues) {
  Bytes bytes(kMany * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 3 == 0);
  add("x.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (131072, 2)}", bytes));
  add("y.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (131072,)}", Bytes(kMany)));
  expect_to_come(at("x.npy") + "+" + at("y.npy"), "x.npy");
}

TEST_F(ComingData, WhatIsPackedIsWaitedForWhole) {
  add("x.gz", test::gzip(idx({4, 2, 2}, numbers(16))));
  add("y", idx({4}, from_hex("00010001")));
  const auto set = open(at("x.gz") + "+" + at("y"), true);
  ASSERT_NE(set, nullptr);
  EXPECT_FALSE(set->comes());
  EXPECT_EQ(sources_["x.gz"]->came(), sources_["x.gz"]->size());
}

TEST_F(ComingData, WhatDoesNotComeIsSaid) {
  add("book.txt", numbers(1001));
  const auto set = open("text:" + at("book.txt"), true);
  ASSERT_NE(set, nullptr);
  sources_["book.txt"]->cut();
  const Status came = set->wait(std::vector<std::uint64_t>{3});
  ASSERT_FALSE(came);
  EXPECT_EQ(came.error().message, "the cable is out");
}

}  // namespace
}  // namespace motley::data
