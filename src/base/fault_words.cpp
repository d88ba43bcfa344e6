#include "base/fault_words.h"

#include <array>
#include <string>

namespace motley {
namespace {

// The words are Metal's and torch's. What took too long is named twice, by its code and by what it means.
constexpr std::array<std::string_view, 3> kTooLong = {"ImpactingInteractivity", "Impacting Interactivity",
                                                      "kIOGPUCommandBufferCallbackErrorTimeout"};
constexpr std::array<std::string_view, 3> kAborted = {"command buffer exited with error",
                                                      "Execution of the command buffer was aborted",
                                                      "kIOGPUCommandBufferCallbackError"};
constexpr std::size_t kWordsMax = 300;

}  // namespace

std::optional<Fault> fault_in(std::string_view words) {
  const auto has_one_of = [&](const auto& all) {
    for (const std::string_view each : all)
      if (words.find(each) != std::string_view::npos) return true;
    return false;
  };
  if (words.find(kGaveUp) != std::string_view::npos) return std::nullopt;
  const bool too_long = has_one_of(kTooLong);
  if (!too_long && !has_one_of(kAborted)) return std::nullopt;
  return Fault{too_long ? Fault::Kind::too_long : Fault::Kind::aborted, std::string(words.substr(0, kWordsMax))};
}

}  // namespace motley
