#pragma once
// What words of a driver or a library mean for what a device computed, be they an error's or said on the standard
// error. Pure.

#include <optional>
#include <string_view>

#include "motley/device_model.h"

namespace motley {

/// Empty also for what people are told of a fault, which begins so and may be heard again.
constexpr std::string_view kGaveUp = "the driver gave up work of ";
[[nodiscard]] std::optional<Fault> fault_in(std::string_view words);

}  // namespace motley
