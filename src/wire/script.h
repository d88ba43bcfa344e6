#pragma once
// What runs of a script, as text: lines "NAME TAB WORD" that end in a newline. Names are those of functions
// ("loss()"), classes ("class Net") and values that they read ("w", "by of smooth()"). A word is "=TEXT", a value as
// people read it; "#HASH", code; or "#0:HASH" and "#0:HASH:A,B,C,D", other values, an item of contents (fingerprint.h).
// What both have by one name is the same in both; what one alone has says nothing: another version of Python or of a
// library may make it so. Pure.

#include <optional>
#include <string_view>

#include "wire/fingerprint.h"

namespace motley::wire {

/// `here` is that of the run. Empty when both may be of one script, and where one says nothing.
std::optional<FingerprintDifference> script_difference(std::string_view here, std::string_view there);

}  // namespace motley::wire
