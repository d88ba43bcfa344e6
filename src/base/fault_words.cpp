#include "base/fault_words.h"

#include <array>
#include <string>

namespace motley {
namespace {

// The words are Metal's and torch's. What took too long is named twice, by its code and by what it means.
constexpr std::array kTooLong = {std::string_view("ImpactingInteractivity"), std::string_view("Impacting Interactivity"),
                                 std::string_view("kIOGPUCommandBufferCallbackErrorTimeout")};
constexpr std::array kAborted = {std::string_view("command buffer exited with error"),
                                 std::string_view("Execution of the command buffer was aborted"),
                                 std::string_view("kIOGPUCommandBufferCallbackError")};
constexpr std::size_t kWordsMax = 300;

}  // namespace

std::optional<Fault> fault_in(std::string_view words) {
  const auto has_one_of = [&](const auto& all) {
    for (const std::string_view each : all)
      if (words.find(each) != std::string_view::npos) return true;
    return false;
  };
  const bool too_long = has_one_of(kTooLong);
  if (!too_long && !has_one_of(kAborted)) return std::nullopt;
  return Fault{too_long ? Fault::Kind::too_long : Fault::Kind::aborted, std::string(words.substr(0, kWordsMax))};
}

}  // namespace motley
