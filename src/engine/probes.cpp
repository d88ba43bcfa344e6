#include "engine/probes.h"

#include <bit>
#include <cmath>
#include <cstdio>

#include "base/assert.h"
#include "base/little_endian.h"
#include "compute/probe.h"

namespace motley::engine {
namespace {

// As much as second looks (sketches.h) allow: from there on a worker would be struck out anyway.
constexpr double kOtherwise = 0.1;

// Of all that is kept: of a model with 161 tensors that is 2,000 workers.
constexpr std::size_t kBytesMax = 64 << 20;

std::string percent(double part) {
  if (!std::isfinite(part)) return "beyond any number";
  char text[32];
  std::snprintf(text, sizeof text, "by %.2g %%", 100 * part);
  return text;
}

}  // namespace

std::vector<std::uint8_t> probe_bytes(std::span<const float> numbers) {
  std::vector<std::uint8_t> bytes(numbers.size() * sizeof(float));
  std::byte* at = reinterpret_cast<std::byte*>(bytes.data());
  for (const float number : numbers) {
    store_le(at, std::bit_cast<std::uint32_t>(number));
    at += sizeof(float);
  }
  return bytes;
}

bool Probes::keep(fleet::WorkerId worker, std::span<const std::uint8_t> bytes, const Layout& layout) {
  const std::size_t numbers = compute::probe_numbers(layout);
  if (bytes.size() != numbers * sizeof(float)) return false;
  if (!kept_.contains(worker) && (kept_.size() + 1) * bytes.size() > kBytesMax) return false;
  std::vector<float>& kept = kept_[worker];
  kept.clear();
  kept.reserve(numbers);
  for (const std::byte* at = std::as_bytes(bytes).data(); kept.size() < numbers; at += sizeof(float))
    kept.push_back(std::bit_cast<float>(load_le<std::uint32_t>(at)));
  return true;
}

Probes::Compared Probes::compare(fleet::WorkerId worker, fleet::WorkerId reference, const Layout& layout) const {
  MOTLEY_ASSERT(kept_.contains(worker) && kept_.contains(reference));
  const std::vector<float>&one = kept_.at(worker), &other = kept_.at(reference);
  if (one.front() != other.front()) return {.verdict = modes::ProbeVerdict::of_other_states, .text = {}};
  const auto found = compute::compare(layout, one, other);
  if (!found || found->worst <= compute::kProbeTolerance) return {};
  Compared compared;
  if (!(found->worst <= kOtherwise)) compared.verdict = modes::ProbeVerdict::otherwise;
  compared.text = found->tensor + " differs " + percent(found->worst);
  if (found->tensors > 1)
    compared.text +=
        " (" + std::to_string(found->tensors) + " tensors differ, of which " + found->first + " is the first)";
  return compared;
}

}  // namespace motley::engine
