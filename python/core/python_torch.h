#pragma once
// The built-in models, computed by the torch of the Python that this runs in. motley/_computing/_recipes.py has
//
//   version() -> str     devices() -> [(name, description, bytes of memory, threads)]     to_be_confined() -> [str]
//   facts() -> [(name, text)]
//   initial_state(spec) -> (Layout, float32 [flat_elements], {name: bytes of what is frozen}, acts on groups, draws)
//   make(spec, train, test, batch, shuffle, micro_batch, device, threads) -> the object of python_model.h
//   export(spec, layout, weights, frozen, step, path)     logits(spec, weights) -> (window: bytes) -> 256 floats

#include "bindings.h"
#include "torch_models.h"

namespace motley::python {

/// load() -> that module, or None where there is no torch. It is asked once, when torch is needed, and outlives what is
/// returned.
std::shared_ptr<cli::TorchModels> python_torch(const nb::callable& load);

void bind_recipes(nb::module_& m);

}  // namespace motley::python
