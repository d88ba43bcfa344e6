#pragma once
// The learning rate of the step that a round's changes make together, by how many workers contributed. Pure.

#include <cstddef>

namespace motley::ps {

/// The best at a momentum of 0.9, whatever the size of the model (arXiv:2503.09799): 0.4, 0.6, 0.6 and 0.8 for one,
/// two, four and eight workers; between these along the line, above eight as for eight. REQUIRES workers > 0.
[[nodiscard]] double outer_rate(std::size_t workers);

}  // namespace motley::ps
