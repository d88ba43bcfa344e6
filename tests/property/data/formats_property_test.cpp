#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/nearest.h"
#include "data/format/idx.h"
#include "data/format/npy.h"

namespace motley::data {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

RC_GTEST_PROP(NpyProperty, ReadsWhatNumpyWrites, ()) {
  const auto shape = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 6));
  RC_PRE(shape.size() <= 6);
  std::uint64_t elements = 1;
  std::string text = "{'descr': '<i4', 'fortran_order': False, 'shape': (";
  for (const std::uint64_t extent : shape) {
    elements *= extent;
    text += std::to_string(extent) + (shape.size() == 1 ? "," : ", ");
  }
  if (shape.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  text.resize((text.size() + 10) / 64 * 64 + 53, ' ');
  text += '\n';
  const std::string file = std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(text.size() & 0xFF) +
                           static_cast<char>(text.size() >> 8) + text + std::string(elements * 4, 'x');
  const auto bytes = bytes_of(file);
  const auto array = parse_npy(bytes, "x.npy");
  RC_ASSERT(array.ok());
  RC_ASSERT(array->shape == shape);
  RC_ASSERT(array->bytes.size() == elements * 4);
}

RC_GTEST_PROP(IdxProperty, AcceptsExactlyTheRightLength, ()) {
  const auto rows = *rc::gen::inRange<unsigned>(0, 300);
  const auto columns = *rc::gen::inRange<unsigned>(0, 5);
  const auto length = *rc::gen::oneOf(rc::gen::just(rows * columns), rc::gen::inRange<unsigned>(0, 1500));
  std::string file("\0\0\x08\x02\0\0", 6);
  file += static_cast<char>(rows >> 8);
  file += static_cast<char>(rows & 0xFF);
  file += std::string(3, '\0') + static_cast<char>(columns) + std::string(length, 'x');
  const auto bytes = bytes_of(file);
  RC_ASSERT(parse_idx(bytes, "x").ok() == (length == rows * columns));
}

RC_GTEST_PROP(NearestProperty, OneTypingErrorIsForgiven, ()) {
  const std::vector<std::string_view> known{"train.steps", "optimizer.kind", "schedule.warmup", "data.uri"};
  const auto which = *rc::gen::inRange<std::size_t>(0, known.size());
  std::string word(known[which]);
  const auto at = *rc::gen::inRange<std::size_t>(0, word.size() - 1);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      word.erase(at, 1);
      break;
    case 1:
      word.insert(at, 1, 'q');
      break;
    case 2:
      word[at] = 'q';
      break;
    default:
      std::swap(word[at], word[at + 1]);
      break;
  }
  RC_ASSERT(nearest(word, known) == known[which]);
}

}  // namespace
}  // namespace motley::data
