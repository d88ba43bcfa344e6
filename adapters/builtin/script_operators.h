#pragma once
// The operators that a TorchScript file may use. Any thread.

#include <string_view>

namespace motley::builtin {

/// By its qualified name, as "aten::conv2d": it computes with the values it is given and with nothing else. What is not
/// known to do so does not.
bool works_on_values_alone(std::string_view name);

}  // namespace motley::builtin
