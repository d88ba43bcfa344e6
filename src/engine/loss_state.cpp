#include "engine/loss_state.h"

#include <algorithm>
#include <string>

#include "wire/limits.h"

namespace motley::engine {
namespace {

Error misfit(const std::string& expected, const std::string& found) {
  return {ErrorCode::protocol, "state of the loss: expected " + expected + ", found " + found,
          "update motley on both machines to the same version"};
}

}  // namespace

std::vector<SharedBytes> pieces_of(const LossState& state) {
  std::vector<SharedBytes> pieces;
  const auto bytes = state.bytes.bytes();
  std::size_t offset = 0;
  do {
    const auto part = bytes.subspan(offset, std::min(wire::kSegmentBytesMax, bytes.size() - offset));
    wire::State piece{state.number, bytes.size(), offset, {}};
    const auto* const first = reinterpret_cast<const std::uint8_t*>(part.data());
    piece.data.assign(first, first + part.size());
    pieces.push_back(wire::encode(piece));
    offset += part.size();
  } while (offset < bytes.size());
  return pieces;
}

Status LossStateAssembler::add(const wire::State& piece) {
  if (piece.bytes > wire::kLossStateBytesMax)
    return misfit("at most " + std::to_string(wire::kLossStateBytesMax) + " bytes", std::to_string(piece.bytes));
  if (number_ == 0) {
    if (piece.number <= state_.number)
      return misfit("a number above " + std::to_string(state_.number), std::to_string(piece.number));
    number_ = piece.number;
    bytes_ = piece.bytes;
    here_.clear();
  }
  if (piece.number != number_ || piece.bytes != bytes_ || piece.offset != here_.size())
    return misfit(
        "the rest of number " + std::to_string(number_) + " from byte " + std::to_string(here_.size()) + " on",
        "number " + std::to_string(piece.number) + " from byte " + std::to_string(piece.offset) + " on");
  const bool more = !piece.data.empty() || bytes_ == 0;
  if (!more || piece.data.size() > bytes_ - here_.size())
    return misfit("1 to " + std::to_string(bytes_ - here_.size()) + " bytes", std::to_string(piece.data.size()));
  const auto data = std::as_bytes(std::span(piece.data));
  here_.insert(here_.end(), data.begin(), data.end());
  if (here_.size() < bytes_) return {};
  state_ = {number_, SharedBytes::copy_of(here_)};
  number_ = 0;
  here_ = {};
  return {};
}

}  // namespace motley::engine
