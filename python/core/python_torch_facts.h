#pragma once
// What the program tells of the torch in the Python that it runs in. motley/_machines/_devices.py has
//
//   version() -> str     facts() -> [(name, text)]     devices() -> [(name, description, bytes of memory, threads)]

#include "bindings.h"
#include "torch_facts.h"

namespace motley::python {

/// load() -> that module, or None where there is no torch. It is asked once, when something is to be told, and outlives
/// what is returned.
std::shared_ptr<cli::TorchFacts> python_torch_facts(const nb::callable& load);

}  // namespace motley::python
