#include "machine/error_words.h"

namespace motley::machine {

class ErrorWords::Pipe {};

ErrorWords::ErrorWords(std::function<bool(std::string_view)> /*wanted*/) {}
ErrorWords::~ErrorWords() = default;
std::optional<std::string> ErrorWords::take() { return std::nullopt; }

}  // namespace motley::machine
