#include "data/format/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../fixtures.h"

namespace motley::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using test::operator+;
using test::Bytes;
using test::bytes_of_text;
using test::from_hex;
using test::npy;

// numpy.save of [[1, 2], [3, 4], [5, 6]] as u1, NumPy 2.
const Bytes kGolden = from_hex("934e554d5059 0100 7600") +
                      bytes_of_text("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }") +
                      Bytes(58, std::byte{' '}) + bytes_of_text("\n") + from_hex("010203040506");

std::string npy_complaint(const Bytes& bytes) {
  const auto array = parse_npy(bytes, "x.npy");
  if (array) return "accepted";
  EXPECT_EQ(array.error().code, ErrorCode::input);
  EXPECT_THAT(array.error().message, HasSubstr("x.npy: expected"));
  EXPECT_FALSE(array.error().hint.empty());
  return array.error().message;
}

TEST(Npy, ReadsTheGoldenVector) {
  ASSERT_EQ(kGolden.size(), 134U);
  const auto array = parse_npy(kGolden, "x.npy");
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->dtype, DType::u8);
  EXPECT_THAT(array->shape, ElementsAre(3, 2));
  EXPECT_EQ(Bytes(array->bytes.begin(), array->bytes.end()), from_hex("010203040506"));
}

TEST(Npy, RefusesEveryTruncationAndSurplus) {
  for (std::size_t size = 0; size < kGolden.size(); ++size) {
    EXPECT_NE(npy_complaint({kGolden.begin(), kGolden.begin() + static_cast<std::ptrdiff_t>(size)}), "accepted")
        << size;
  }
  EXPECT_THAT(npy_complaint(kGolden + Bytes(1)), HasSubstr("expected 6 bytes of elements"));
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  for (const char* version : {"02 00", "03 00"}) {
    const Bytes bytes = from_hex("934e554d5059") + from_hex(version) +
                        Bytes{static_cast<std::byte>(header.size()), {}, {}, {}} + bytes_of_text(header) + Bytes(4);
    const auto array = parse_npy(bytes, "x.npy");
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_EQ(array->dtype, DType::f32);
  }
  EXPECT_THAT(npy_complaint(from_hex("934e554d5059 0400 0000 0000")), HasSubstr("version 4"));
}

TEST(Npy, KnowsItsTypes) {
  const std::pair<const char*, DType> known[] = {{"<f4", DType::f32}, {"<f8", DType::f64}, {"<i4", DType::i32},
                                                 {"<i8", DType::i64}, {"|u1", DType::u8},  {"|b1", DType::boolean}};
  for (const auto& [descr, dtype] : known) {
    const std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2,)}";
    const auto array = parse_npy(npy(header, Bytes(2 * bytes_of(dtype))), "x.npy");
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_EQ(array->dtype, dtype);
  }
  for (const char* descr : {">f4", "<f2", "<u4", "<c8", "|S3", "<U5", "|O", ""}) {
    const std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2,)}";
    EXPECT_THAT(npy_complaint(npy(header, Bytes(8))), HasSubstr("found '" + std::string(descr) + "'"));
  }
}

TEST(Npy, TakesTheDictionaryAsPythonWritesIt) {
  for (const char* header : {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"|u1\"}\n",
                             "  { 'descr' : '|u1' , 'fortran_order' : False , 'shape' : ( 2 , ) , } \n",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (2L,), }"}) {
    EXPECT_TRUE(parse_npy(npy(header, Bytes(2)), "x.npy")) << header;
  }
  const auto scalar = parse_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", Bytes(1)), "x.npy");
  ASSERT_TRUE(scalar);
  EXPECT_THAT(scalar->shape, IsEmpty());
}

TEST(Npy, NamesWhatIsWrongInTheDictionary) {
  EXPECT_THAT(npy_complaint(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", Bytes(4))),
              HasSubstr("Fortran"));
  EXPECT_THAT(npy_complaint(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", Bytes(4))),
              HasSubstr("structured"));
  EXPECT_THAT(npy_complaint(npy("{'descr': '<f4', 'shape': (1,)}", Bytes(4))), HasSubstr("'fortran_order'"));
  for (const char* header :
       {"", "{", "}", "{}", "{'descr'}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "{'descr': '<f4' 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "{'descr': '<f4, 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': '1'}"}) {
    EXPECT_NE(npy_complaint(npy(header, Bytes(4))), "accepted") << header;
  }
}

TEST(Npy, RefusesSizesThatOverflow) {
  const auto of_shape = [](const std::string& shape) {
    return npy("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}", Bytes(8));
  };
  EXPECT_THAT(npy_complaint(of_shape("(4294967296, 4294967296, 2)")), HasSubstr("too many"));
  EXPECT_THAT(npy_complaint(of_shape("(18446744073709551615,)")), HasSubstr("too many"));
  EXPECT_THAT(npy_complaint(of_shape("(2305843009213693953,)")),
              HasSubstr("too many"));  // 2^61 + 1: times 8 wraps to 8
}

}  // namespace
}  // namespace motley::data
