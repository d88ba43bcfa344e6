#pragma once
// An optimizer whose arithmetic is Python's. The object it is made of has
//
//   weights, gradients: arrays of Layout.flat_elements float32
//   step([(lr, momentum, beta1, beta2) by group])   new weights from both, in `weights`
//   states: [names]                                 what it keeps of parameters; `fresh`: nothing so far
//   get_state(name), set_state(name)                to and from `gradients`
//   restored(version)
//
// and is called by one thread at a time, with the GIL.

#include <memory>
#include <string>

#include "bindings.h"
#include "motley/layout.h"
#include "ps/spec.h"

namespace motley::python {

/// `hint`: what to do where it fails. REQUIRES the GIL. Raises where the object is not what it should be.
std::shared_ptr<ps::OutsideOptimizer> make_outside_optimizer(const nb::object& optimizer, Layout layout,
                                                             std::string hint);

}  // namespace motley::python
