#pragma once
// Fingerprints of data sets, as text: "HEAD" or "HEAD; contents: ITEM ITEM …". The head has sizes, shapes, types and,
// where all of the data was read, a hash. An item is a sample that was looked at: NUMBER:HASH, or NUMBER:HASH:A,B,C,D,
// where the hash is of what is equal on all machines and A to D are figures of its floating-point numbers in
// millionths. These differ in their last bits between machines, so they are equal within kFigureTolerance. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace motley::wire {

inline constexpr std::int64_t kFigureTolerance = 100;  // millionths

struct FingerprintDifference {
  std::string expected, found, hint;
};

/// `here` is that of the run. Empty when both may be of the same data; where one has no contents the heads decide.
std::optional<FingerprintDifference> fingerprint_difference(std::string_view here, std::string_view there);

}  // namespace motley::wire
