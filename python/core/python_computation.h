#pragma once
// A Computation whose arithmetic is Python's. The object it is made of has
//
//   device, description: str     micro_batch: int       weights, gradients: arrays of Layout.flat_elements float32
//   run(task) -> (count, weight, loss_sum, [sums of scores]), or ("memory" | "internal", text)
//   memory(for_others) -> (used, peak, budget) in bytes
//   resident: bool, if it also is what python_residence.h asks for; may be missing
//
// and is called on the thread that runs the computation. The GIL is held for its own work only.

#include <memory>

#include "bindings.h"
#include "motley/computation.h"

namespace motley::python {

/// REQUIRES the GIL. Raises where the object is not what it should be.
std::unique_ptr<Computation> make_computation(nb::object computation, Layout layout);

}  // namespace motley::python
