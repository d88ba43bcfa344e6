#pragma once
// Fingerprints of data sets, as text: "HEAD", "HEAD; contents: ITEM ITEM …" or that with "; whole: ARRAY ARRAY …"
// behind it. The head has sizes, shapes and types; where all of the data was read, a hash is in it, or behind it as ";
// hash: HASH", which is compared where both have one. An item is a sample that was looked at: NUMBER:HASH, or
// NUMBER:HASH:A,B,C,D, where the hash is of what is equal on all machines and A to D are figures of its floating-point
// numbers in millionths. These differ in their last bits between machines, so they are equal within kFigureTolerance.
// An array is one that the set holds in memory: NAME=KIND,ROWS,STEP:S0:S1, or NAME=KIND,ROWS,STEP:S0:S1:P,Q,R,S,T. Its
// blocks of ROWS samples begin STEP samples from each other; S0 is the sum of their hashes and S1 that of (number + 1)
// times hash, modulo kHashPrime and in hexadecimal digits, so that one block that differs has a number. P to S are
// random projections of floating-point numbers, to which rounding adds as the root of the number of blocks, T the
// logarithm of their root mean square. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace motley::wire {

inline constexpr std::int64_t kFigureTolerance = 100;  // millionths
inline constexpr std::uint64_t kHashPrime = 4294967291;
/// Of a projection, for each root of a block: where many blocks differ, and where one does. Rounding that one machine
/// does in another way is in many; of one block alone it is only that of the sum.
inline constexpr std::int64_t kManyTolerance = 20, kOneTolerance = 1;

struct FingerprintDifference {
  std::string expected, found, hint;
};

/// `here` is that of the run. Empty when both may be of the same data; where one has no contents the heads decide.
std::optional<FingerprintDifference> fingerprint_difference(std::string_view here, std::string_view there);

/// Of two items of contents, or other words of that form (script.h).
bool same_item(std::string_view a, std::string_view b);

}  // namespace motley::wire
