#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <numeric>

#include "base/little_endian.h"
#include "data/dataset.h"
#include "fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::Directory;
using test::from_hex;
using test::idx;
using test::npy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFloats = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
constexpr const char* kLongs = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";

std::shared_ptr<const Dataset> open(const std::string& uri, const OpenOptions& options = {}) {
  auto set = open_dataset(uri, "train", options);
  EXPECT_TRUE(set) << set.error().message;
  return set ? *set : nullptr;
}

Error failure(const std::string& uri, const std::string& part = "train") {
  const auto set = open_dataset(uri, part, {});
  EXPECT_FALSE(set) << uri;
  return set ? Error{} : set.error();
}

template <class T>
Bytes elements(std::initializer_list<T> values) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  Bytes out(values.size() * sizeof(T));
  std::size_t at = 0;
  for (const T value : values) {
    store_le(&out[at], std::bit_cast<Word>(value));
    at += sizeof(T);
  }
  return out;
}

std::vector<float> gather(const Dataset& set, const std::vector<std::uint64_t>& indices) {
  std::size_t each = 1;
  for (const std::int64_t extent : set.sample_shape()) each *= static_cast<std::size_t>(extent);
  std::vector<float> x(indices.size() * each);
  set.gather(indices, x);
  return x;
}

TEST(Open, PixelsAreNormalisedAsNumpyDoesIt) {
  const Directory directory;
  const std::string images = directory.write("i", idx({3, 1, 2}, from_hex("00014d80feff")));
  const std::string labels = directory.write("l", idx({3}, from_hex("000901")));
  const auto set = open(images + "+" + labels, {{0.2860F, 0.3530F}, "", {}, {}, {}});
  EXPECT_THAT(set->sample_shape(), ElementsAre(1, 1, 2));
  EXPECT_EQ(set->size(), 3U);
  EXPECT_EQ(set->classes(), 10U);
  EXPECT_EQ(set->target_kind(), TargetKind::classes);
  // ((numpy.float32(v) / numpy.float32(255) - mean) / std).view(numpy.uint32)
  std::vector<std::uint32_t> bits;
  for (const float value : gather(*set, {0, 1, 2})) bits.push_back(std::bit_cast<std::uint32_t>(value));
  EXPECT_THAT(bits, ElementsAre(0xbf4f6929, 0xbf4c911b, 0x3d393308, 0x3f1c9e13, 0x4000bd4c, 0x4001734f));
  std::vector<std::int64_t> classes(2);
  set->gather_classes(std::vector<std::uint64_t>{2, 1}, classes);
  EXPECT_THAT(classes, ElementsAre(1, 9));
}

TEST(Open, FingerprintsTellDataApartAndFormatsNot) {
  const Directory directory;
  const Bytes images = idx({2, 1, 2}, from_hex("01020304"));
  const Bytes labels = idx({2}, from_hex("0001"));
  const auto fingerprint = [&](const Bytes& x, const Bytes& y) {
    return open(directory.write("x", x) + "+" + directory.write("y", y))->fingerprint();
  };
  const std::string base = fingerprint(images, labels);
  EXPECT_EQ(base, "2 samples u8 [1, 1, 2], 2 classes, content " + base.substr(base.size() - 16));
  EXPECT_EQ(base, fingerprint(test::gzip(images), test::gzip(labels)));
  EXPECT_EQ(base, fingerprint(images, npy(kLongs, elements<std::int64_t>({0, 1}))));
  EXPECT_NE(base, fingerprint(idx({2, 1, 2}, from_hex("01020305")), labels));
  EXPECT_NE(base, fingerprint(images, idx({2}, from_hex("0100"))));
  EXPECT_NE(base, fingerprint(idx({2, 2}, from_hex("01020304")), labels));
}

TEST(Open, FloatsAreTakenAsTheyAre) {
  const Directory directory;
  const std::string x = directory.write("x.npy", npy(kFloats, elements({1.5F, -2.0F, 3.0F, 0.25F})));
  const std::string y = directory.write("y.npy", npy(kFloats, elements({1.0F, 2.0F, 3.0F, 4.0F})));
  const auto set = open(x + "+" + y, {{0.5F, 2.0F}, "", {}, {}, {}});
  EXPECT_THAT(gather(*set, {1, 0}), ElementsAre(3.0F, 0.25F, 1.5F, -2.0F));
  EXPECT_EQ(set->target_kind(), TargetKind::values);
  EXPECT_EQ(set->target_elements(), 2U);
  EXPECT_EQ(set->classes(), 0U);
  std::vector<float> values(2);
  set->gather_values(std::vector<std::uint64_t>{1}, values);
  EXPECT_THAT(values, ElementsAre(3.0F, 4.0F));
}

TEST(Open, OtherTypesBecomeFloats) {
  const Directory directory;
  const std::string y = directory.write("y.npy", npy(kLongs, elements<std::int64_t>({1, 0})));
  const auto first = [&](const char* descr, const Bytes& bytes) {
    const std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2, 1), }";
    return gather(*open(directory.write("x.npy", npy(header, bytes)) + "+" + y), {0, 1});
  };
  EXPECT_THAT(first("<f8", elements({0.1, -1e300})), ElementsAre(0.1F, -std::numeric_limits<float>::infinity()));
  EXPECT_THAT(first("<i4", elements<std::int32_t>({-7, 8})), ElementsAre(-7.0F, 8.0F));
  EXPECT_THAT(first("<i8", elements<std::int64_t>({-7, 8})), ElementsAre(-7.0F, 8.0F));
  EXPECT_THAT(first("|b1", from_hex("0100")), ElementsAre(1.0F, 0.0F));
}

TEST(Open, ADirectoryHoldsTrainAndTest) {
  const Directory directory;
  directory.write("train-images-idx3-ubyte.gz", test::gzip(idx({2, 1, 1}, from_hex("0102"))));
  directory.write("train-labels-idx1-ubyte", idx({2}, from_hex("0001")));
  directory.write("t10k-images.idx3-ubyte", idx({1, 1, 1}, from_hex("03")));
  EXPECT_EQ(open(directory.path())->size(), 2U);
  EXPECT_THAT(failure(directory.path(), "test").message, HasSubstr("t10k-labels-idx1-ubyte"));
  directory.write("t10k-labels.idx1-ubyte", idx({1}, from_hex("01")));
  const auto test_set = open_dataset(directory.path(), "test", {});
  ASSERT_TRUE(test_set);
  EXPECT_EQ((*test_set)->size(), 1U);
}

TEST(Open, RefusesFilesThatDoNotBelongTogether) {
  const Directory directory;
  const std::string x = directory.write("x", idx({2, 1, 1}, from_hex("0102")));
  const auto with = [&](const Bytes& y) { return failure(x + "+" + directory.write("y", y)); };
  EXPECT_THAT(with(idx({3}, from_hex("000102"))).message, HasSubstr("expected 2 targets"));
  EXPECT_THAT(with(idx({2, 2}, from_hex("00010203"))).message, HasSubstr("[2, 2]"));
  EXPECT_THAT(with(npy(kLongs, elements<std::int64_t>({0, -3}))).message, HasSubstr("-3 at sample 1"));
  EXPECT_THAT(with(npy(kLongs, elements<std::int64_t>({0, 1 << 20}))).message, HasSubstr("1048576 at sample 1"));
  EXPECT_THAT(with(idx({0}, {})).message, HasSubstr("at least one sample"));
}

TEST(Open, NamesTheFileThatIsMissingOrDamaged) {
  const Directory directory;
  const std::string good = directory.write("good", idx({1}, from_hex("00")));
  const std::string bad = directory.write("bad", idx({2}, from_hex("00")));
  EXPECT_THAT(failure(directory.path() + "/absent+" + good).message, HasSubstr("/absent: cannot be opened"));
  EXPECT_THAT(failure(good + "+" + bad).message, HasSubstr(bad + ": expected 2 bytes"));
  EXPECT_THAT(failure(directory.path() + "+" + good).message, HasSubstr("expected a file, found a directory"));
  EXPECT_THAT(failure(good).message, HasSubstr("expected a packed data set"));
  EXPECT_THAT(failure("absent.motley").message, HasSubstr("absent.motley: cannot be opened"));
  EXPECT_EQ(failure("absent.motley").code, ErrorCode::input);
}

TEST(Open, GuessesWhatWasMeant) {
  EXPECT_THAT(failure("fasion-mnist").hint, HasSubstr("'fashion-mnist'"));
  EXPECT_THAT(failure("mnits").hint, HasSubstr("'mnist'"));
  EXPECT_THAT(failure("synthetik:1:2:3").hint, HasSubstr("'synthetic'"));
  EXPECT_THAT(failure("imagenet").hint, HasSubstr("spelling"));
  EXPECT_THAT(failure("mnist", "valid").message, HasSubstr("'valid'"));
}

TEST(Open, RefusesANormalisationThatDividesByNothing) {
  for (const float std :
       {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto set = open_dataset("synthetic:4:2:2", "train", {{0, std}, "", {}, {}, {}});
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ErrorCode::usage);
  }
}

TEST(Open, SyntheticIsTheSameEverywhere) {
  const auto train = open("synthetic:1000:8:3");
  EXPECT_EQ(train->fingerprint(), "1000 samples f32 [8], 3 classes, content d606260ad86ef4d9");
  const auto test_set = open_dataset("synthetic:1000:8:3", "test", {});
  ASSERT_TRUE(test_set);
  EXPECT_EQ((*test_set)->fingerprint(), "1000 samples f32 [8], 3 classes, content ab697f7593318179");
  for (const char* uri : {"synthetic:", "synthetic:1", "synthetic:1:2", "synthetic:1:2:3:4", "synthetic:0:2:3",
                          "synthetic:-1:2:3", "synthetic:1:2:3x", "synthetic:99999999999999999999:1:1"}) {
    EXPECT_THAT(failure(uri).message, HasSubstr("synthetic:SIZE:FEATURES:CLASSES")) << uri;
  }
  EXPECT_THAT(failure("synthetic:4294967296:4294967296:2").message, HasSubstr("at most 2^31 values"));
}

}  // namespace
}  // namespace motley::data
