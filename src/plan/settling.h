#pragma once
// How far what is known of a set of workers has settled. Pure.

#include <cstdint>

namespace motley::plan {

/// In the first passes with somebody new connections are cold and shares unsettled: so many, or fewer where each is
/// long.
class Settling {
 public:
  enum class Stage : std::uint8_t {
    unsettled,
    few_long_passes,
    settled,
    settled_for_seconds,  // where passes are short the first of them are over at once, and estimates still move
  };

  /// Others take part from now on, or one of them made a step alone.
  void begin() noexcept;
  /// A pass by all of them took so long.
  void closed(double seconds) noexcept;
  [[nodiscard]] Stage stage() const noexcept;
  [[nodiscard]] bool settled() const noexcept { return stage() != Stage::unsettled; }
  /// So many.
  [[nodiscard]] std::uint32_t passes() const noexcept { return passes_; }

 private:
  std::uint32_t passes_ = 0;
  double seconds_ = 0;  // of these
};

}  // namespace motley::plan
