#include "store/safetensors.h"

#include "base/crc32c.h"
#include "store/safetensors_file.h"
#include "temporary.h"

namespace motley::store {
namespace {

using test::floats;
using test::message;
using test::TemporaryDirectory;

const std::filesystem::path kData = MOTLEY_TEST_DATA;

TensorView view(const Safetensors& content, const std::string& name) {
  for (const TensorView& tensor : content.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

template <class T>
std::vector<T> values(const TensorView& tensor) {
  const std::string bytes = test::text(tensor.parts.at(0));
  std::vector<T> out(bytes.size() / sizeof(T));
  bytes.copy(reinterpret_cast<char*>(out.data()), bytes.size());
  return out;
}

TEST(Safetensors, ReadsWhatThePythonPackageWrote) {
  const auto content = read_safetensors(kData / "python.safetensors");
  ASSERT_TRUE(content) << message(content);
  EXPECT_EQ(content->metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"origin", "safetensors.torch"}}));
  EXPECT_EQ(content->tensors.size(), 11U);
  EXPECT_EQ(values<float>(view(*content, "conv.bias")), (std::vector<float>{0.5F, -1, 2}));
  EXPECT_EQ(view(*content, "conv.weight").shape, (std::vector<std::int64_t>{3, 2, 2, 1}));
  EXPECT_EQ(values<float>(view(*content, "conv.weight")).at(11), 2.75F);
  EXPECT_TRUE(view(*content, "scale").shape.empty());
  EXPECT_EQ(values<std::int64_t>(view(*content, "steps")), std::vector<std::int64_t>{123});
  EXPECT_EQ(values<double>(view(*content, "double")), std::vector<double>{1e-300});
  EXPECT_EQ(values<std::int32_t>(view(*content, "ints")), (std::vector<std::int32_t>{-7, 8}));
  EXPECT_EQ(values<std::uint16_t>(view(*content, "half")), (std::vector<std::uint16_t>{0x3E00, 0xC000}));
  EXPECT_EQ(values<std::uint16_t>(view(*content, "brain")), (std::vector<std::uint16_t>{0x3F80, 0x3F00}));
  EXPECT_EQ(values<std::uint8_t>(view(*content, "mask")), (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(view(*content, "mask").dtype, DType::boolean);
  EXPECT_EQ(view(*content, "empty").parts.at(0).size(), 0U);
}

// The header of this file happens to need the same padding for the package's 8 bytes as for our 64.
TEST(Safetensors, WritesTheBytesThatThePythonPackageWrites) {
  const TemporaryDirectory directory;
  std::vector<float> weight(12);
  for (std::size_t i = 0; i < 12; ++i) weight[i] = static_cast<float>(i) / 4;
  const SharedBytes all = floats(weight);
  Safetensors content;
  content.metadata = {{"pad", std::string(28, 'x')}};
  content.tensors.push_back({"a", DType::f32, {3}, {floats({0.5F, -1, 2})}});
  content.tensors.push_back({"b.weight", DType::f32, {3, 2, 2, 1}, {all.slice(0, 20), {}, all.slice(20, 28)}});
  const Status written = write_safetensors(directory / "out", content);
  ASSERT_TRUE(written) << message(written);
  EXPECT_EQ(test::slurp(directory / "out"), test::slurp(kData / "aligned.safetensors"));
}

TEST(Safetensors, DataStartsAtAMultipleOf64AndLargeElementsComeFirst) {
  const TemporaryDirectory directory;
  for (std::size_t length = 0; length < 70; ++length) {
    Safetensors content;
    content.tensors.push_back(
        {std::string(length + 1, 'n'), DType::u8, {3}, {SharedBytes::copy_of(std::as_bytes(std::span("ab")))}});
    content.tensors.push_back({"f", DType::f32, {1}, {floats({1})}});
    ASSERT_TRUE(write_safetensors(directory / "out", content));
    const std::string file = test::slurp(directory / "out");
    EXPECT_EQ((file.size() - 7) % 64, 0U);
    const auto back = read_safetensors(directory / "out");
    ASSERT_TRUE(back) << message(back);
    EXPECT_EQ(back->tensors.at(0).name, "f");
  }
}

// Past the page cache, page by page, and a last page that is cut.
TEST(Safetensors, LargeFilesComeBackAsTheyWere) {
  const TemporaryDirectory directory;
  constexpr std::size_t kFloats = 1500001;
  std::vector<float> numbers(kFloats);
  for (std::size_t i = 0; i < kFloats; ++i) numbers[i] = static_cast<float>(i);
  const SharedBytes all = floats(numbers);
  Safetensors content;
  content.tensors.push_back({"one", DType::f32, {kFloats}, {all.slice(0, 4004), all.slice(4004, all.size() - 4004)}});
  content.tensors.push_back({"two", DType::f32, {3}, {floats({1, 2, 3})}});
  const auto hash = write_safetensors_hashed(directory / "out", content);
  ASSERT_TRUE(hash) << message(hash);
  const std::string file = test::slurp(directory / "out");
  EXPECT_EQ(hash->bytes, file.size());
  EXPECT_EQ(hash->crc32c, crc32c(std::as_bytes(std::span(file))));
  const auto back = read_safetensors(directory / "out");
  ASSERT_TRUE(back) << message(back);
  EXPECT_EQ(values<float>(view(*back, "one")), numbers);
  EXPECT_EQ(values<float>(view(*back, "two")), (std::vector<float>{1, 2, 3}));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const TemporaryDirectory directory;
  const std::string whole = test::slurp(kData / "python.safetensors");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::spill(directory / "cut", whole.substr(0, size));
    const auto content = read_safetensors(directory / "cut");
    ASSERT_FALSE(content) << "cut to " << size;
    EXPECT_EQ(content.error().code, ErrorCode::input);
    EXPECT_NE(content.error().message.find("cut"), std::string::npos);  // names the file
    EXPECT_FALSE(content.error().hint.empty());
  }
  test::spill(directory / "long", whole + "x");
  EXPECT_FALSE(read_safetensors(directory / "long"));
}

TEST(Safetensors, AnUnalignedHeaderIsAccepted) {
  const TemporaryDirectory directory;
  const std::string json = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(json.size());
  test::spill(directory / "odd", file + json + "z");
  const auto content = read_safetensors(directory / "odd");
  ASSERT_TRUE(content) << message(content);
  EXPECT_EQ(test::text(content->tensors.at(0).parts.at(0)), "z");
}

struct Hostile {
  std::string json;
  std::uint64_t data_bytes;
  std::string says;
};

class SafetensorsHostile : public testing::TestWithParam<Hostile> {};

TEST_P(SafetensorsHostile, IsRefusedWithTheReason) {
  const auto content = parse_safetensors_header(GetParam().json, GetParam().data_bytes);
  ASSERT_FALSE(content) << GetParam().json;
  EXPECT_EQ(content.error().code, ErrorCode::input);
  EXPECT_NE(content.error().message.find(GetParam().says), std::string::npos) << content.error().message;
}

std::string tensor(const std::string& name, const std::string& fields) { return "\"" + name + "\":{" + fields + "}"; }
std::string f32(const std::string& shape, const std::string& offsets) {
  return R"("dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]";
}

INSTANTIATE_TEST_SUITE_P(
    Headers, SafetensorsHostile,
    testing::Values(
        Hostile{"", 0, "does not begin with {"}, Hostile{" {}", 0, "does not begin with {"},
        Hostile{"{}", 4, "the tensors end at byte 0, the data at 4"}, Hostile{"{", 0, "no JSON at byte"},
        Hostile{"{} x", 0, "no JSON at byte"}, Hostile{"{\"a\":1}", 0, "a number where the object of"},
        Hostile{"{\"a\":null}", 0, "null where"}, Hostile{"{\"a\":{}}", 0, "is missing"},
        Hostile{"{" + std::string(100'000, '['), 0, "no JSON"},
        Hostile{"{\"a\":" + std::string(100'000, '['), 0, "an array where"},
        Hostile{"{\"__metadata__\":{\"a\":{}}}", 0, "an object where"},
        Hostile{"{\"__metadata__\":{\"a\":1}}", 0, "a number where"},
        Hostile{"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ twice"},
        Hostile{"{" + tensor("a", f32("1", "0,4")) + "," + tensor("a", f32("1", "4,8")) + "}", 8, "the same name"},
        Hostile{"{" + tensor("a", f32("1", "0,4") + R"(,"dtype":"F32")") + "}", 4, "twice"},
        Hostile{"{" + tensor("a", f32("1", "0,4") + R"(,"extra":1)") + "}", 4, "unknown field"},
        Hostile{"{" + tensor("a", R"("dtype":"F4","shape":[],"data_offsets":[0,4])") + "}", 4, "dtype \"F4\""},
        Hostile{"{" + tensor("a", f32("1", "0,4")) + "," + tensor("b", f32("1", "2,6")) + "}", 6, "overlaps"},
        Hostile{"{" + tensor("a", f32("1", "0,4")) + "," + tensor("b", f32("1", "6,10")) + "}", 10, "hole"},
        Hostile{"{" + tensor("a", f32("1", "4,8")) + "}", 8, "hole"},
        Hostile{"{" + tensor("a", f32("1", "0,4")) + "}", 3, "past the 3 bytes"},
        Hostile{"{" + tensor("a", f32("1", "0,4")) + "}", 5, "the data at 5"},
        Hostile{"{" + tensor("a", f32("2", "0,4")) + "}", 4, "does not hold"},
        Hostile{"{" + tensor("a", f32("1", "4,0")) + "}", 4, "ends before it begins"},
        Hostile{"{" + tensor("a", f32("-1", "0,4")) + "}", 4, "a negative number"},
        Hostile{"{" + tensor("a", f32("1.5", "0,4")) + "}", 4, "the number \"1.5\""},
        Hostile{"{" + tensor("a", f32("1e30", "0,4")) + "}", 4, "the number"},
        Hostile{"{" + tensor("a", f32("18446744073709551616", "0,4")) + "}", 4, "the number"},
        Hostile{"{" + tensor("a", f32("18446744073709551615", "0,4")) + "}", 4, "above 2^63"},
        // 2^62 x 4 x 4 bytes is 0 in 64 bits.
        Hostile{"{" + tensor("a", f32("4611686018427387904,4", "0,0")) + "}", 0, "more than 2^64"},
        Hostile{"{" + tensor("a", f32("1", "0,4,8")) + "}", 8, "more than two"},
        Hostile{"{" + tensor("a", f32("1", "0")) + "}", 0, "two numbers"},
        Hostile{"{" + tensor("a", f32("1" + std::string(200, ' ') + ",1", "0")) + "}", 0, "two numbers"},
        Hostile{"{\"\xff\":1}", 0, "no JSON"}));

TEST(SafetensorsHeader, ALengthThatNoFileCanHaveIsRefusedBeforeAnythingIsAllocated) {
  const TemporaryDirectory directory;
  for (const char high : {'\x06', '\x7f', '\xff'}) {
    std::string file(64, high);
    test::spill(directory / "huge", file);
    const auto content = read_safetensors(directory / "huge");
    ASSERT_FALSE(content);
    EXPECT_NE(content.error().message.find("claims"), std::string::npos);
  }
}

TEST(SafetensorsHeader, AZeroInTheShapeTakesNoBytes) {
  const auto content = parse_safetensors_header("{" + tensor("a", f32("0,4611686018427387904,4", "0,0")) + "}", 0);
  ASSERT_TRUE(content) << message(content);
  EXPECT_EQ(content->tensors.at(0).shape.size(), 3U);
}

TEST(SafetensorsWrite, RefusesWhatItCannotRepresent) {
  const TemporaryDirectory directory;
  Safetensors twice;
  twice.tensors.assign(2, {"a", DType::f32, {1}, {floats({1})}});
  EXPECT_EQ(write_safetensors(directory / "a", twice).error().code, ErrorCode::input);
  Safetensors not_text;
  not_text.tensors.push_back({"\xff", DType::f32, {1}, {floats({1})}});
  EXPECT_EQ(write_safetensors(directory / "a", not_text).error().code, ErrorCode::input);
}

TEST(SafetensorsWrite, AMissingDirectoryIsNamed) {
  const TemporaryDirectory directory;
  const Status written = write_safetensors(directory / "missing/file", {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::io);
  EXPECT_NE(written.error().message.find("missing/file"), std::string::npos);
}

}  // namespace
}  // namespace motley::store
