#pragma once
// Between the flat vector and its chunks. Large ones are copied by a few threads.

#include <span>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"

namespace motley {

/// REQUIRES a chunk of the layout's size, or none, for each of its chunks, and layout.flat_elements() floats. Where
/// there is none the vector becomes zero.
void put_chunks(const Layout& layout, std::span<const SharedBytes> chunks, std::span<float> flat);

/// Copies. `statistics`: of that chunk, too; else it is empty.
std::vector<SharedBytes> copy_chunks(const Layout& layout, std::span<const float> flat, bool statistics);

}  // namespace motley
