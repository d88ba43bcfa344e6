#include "data/format/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "../fixtures.h"
#include "data/dataset.h"
#include "data/uri.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;
using test::Directory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpenOptions options_of(std::uint64_t block, bool hold_out = false) {
  OpenOptions options;
  options.block = block;
  options.hold_out = hold_out;
  return options;
}

std::shared_ptr<const Dataset> open_text(const std::string& uri, const OpenOptions& options,
                                         const std::string& part = "train") {
  auto set = open_dataset(uri, part, options);
  EXPECT_TRUE(set) << set.error().message;
  return set ? *set : nullptr;
}

Error failure(const std::string& uri, const OpenOptions& options) {
  const auto set = open_dataset(uri, "train", options);
  EXPECT_FALSE(set) << uri;
  return set ? Error{} : set.error();
}

std::string first_window(const Dataset& set, std::uint64_t index) {
  std::vector<float> x(static_cast<std::size_t>(set.sample_shape()[0]));
  set.gather(std::vector<std::uint64_t>{index}, x);
  return {x.begin(), x.end()};
}

TEST(Text, TargetsAreTheBytesThatFollow) {
  const Directory directory;
  const auto set = open_text("text:" + directory.write("novel", bytes_of_text("abcdefgh\xFFj?")), options_of(3));
  EXPECT_EQ(set->size(), 3U);  // the eleventh byte has a target for nobody
  EXPECT_EQ(set->sample_shape(), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(set->target_kind(), TargetKind::classes);
  EXPECT_EQ(set->target_elements(), 3U);
  EXPECT_EQ(set->classes(), 256U);
  std::vector<float> x(6);
  std::vector<std::int64_t> y(6);
  set->gather(std::vector<std::uint64_t>{2, 0}, x);
  set->gather_classes(std::vector<std::uint64_t>{2, 0}, y);
  EXPECT_THAT(x, ElementsAre('g', 'h', 255, 'a', 'b', 'c'));
  EXPECT_THAT(y, ElementsAre('h', 255, 'j', 'b', 'c', 'd'));
}

TEST(Text, ANormalisationLeavesBytesAlone) {
  const Directory directory;
  OpenOptions options = options_of(1);
  options.normalisation = {0.5F, 0.25F};
  std::vector<float> x(1);
  open_text(directory.write("a.txt", bytes_of_text("zz")), options)->gather(std::vector<std::uint64_t>{0}, x);
  EXPECT_EQ(x[0], 'z');
}

TEST(Text, TheLastTenthIsHeldOut) {
  const Directory directory;
  Bytes bytes(2 * 25 + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::string path = directory.write("a.txt", bytes);
  const auto train = open_text(path, options_of(2, true));
  const auto test_part = open_text(path, options_of(2, true), "test");
  EXPECT_EQ(train->size(), 22U);
  EXPECT_EQ(test_part->size(), 3U);
  EXPECT_EQ(first_window(*test_part, 0), std::string("\x2C\x2D"));
  EXPECT_EQ(open_text(path, options_of(2), "test")->size(), 25U);
  EXPECT_NE(train->fingerprint(), test_part->fingerprint());
}

TEST(Text, FingerprintsTellTextsApartAndPathsNot) {
  const Directory directory;
  const std::string path = directory.write("a.txt", bytes_of_text("the same text"));
  const std::string print = open_text(path, options_of(4))->fingerprint();
  EXPECT_THAT(print, HasSubstr("3 samples u8 [4], 256 classes a byte, content "));
  EXPECT_EQ(print,
            open_text("text:" + directory.write("copy", bytes_of_text("the same text")), options_of(4))->fingerprint());
  EXPECT_NE(print, open_text(directory.write("b.txt", bytes_of_text("the same tex!")), options_of(4))->fingerprint());
  EXPECT_NE(print, open_text(path, options_of(6))->fingerprint());
}

TEST(Text, SaysWhatIsWrongWithAFile) {
  const Directory directory;
  const std::string path = directory.write("short.txt", bytes_of_text("12345678"));
  EXPECT_THAT(failure(path, options_of(8)).message,
              HasSubstr("short.txt: expected at least 9 bytes (a window of 8 and the byte after it), found 8"));
  EXPECT_THAT(failure(path, options_of(4, true)).message, HasSubstr("expected at least 9 bytes"));
  EXPECT_THAT(failure(path, options_of(8)).hint, HasSubstr("model.block"));
  EXPECT_THAT(failure(directory.write("empty.txt", {}), options_of(8)).message, HasSubstr("found 0"));
  EXPECT_THAT(failure("text:" + directory.path(), options_of(8)).message, HasSubstr("found a directory"));
  EXPECT_THAT(failure("text:" + directory.path() + "/absent", options_of(8)).message, HasSubstr("/absent: cannot be"));
  EXPECT_EQ(failure("absent.txt", options_of(8)).code, ErrorCode::input);
  EXPECT_THAT(failure("txt:a", options_of(8)).hint, HasSubstr("'text'"));
}

TEST(Text, OneFileHasManyNames) {
  const Directory directory;
  const std::string path = directory.write("a.txt", bytes_of_text("text"));
  EXPECT_TRUE(same_text(path, "text:" + path));
  EXPECT_TRUE(same_text(path, directory.path() + "/./a.txt"));
  EXPECT_FALSE(same_text(path, directory.write("b.txt", bytes_of_text("text"))));
  EXPECT_FALSE(same_text(path, ""));
  EXPECT_FALSE(same_text("mnist", "mnist"));
}

}  // namespace
}  // namespace motley::data
