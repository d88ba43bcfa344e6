#pragma once
// A DeviceModel whose arithmetic is Python's. The object it is made of has
//
//   device, description: str     micro_batch: int       weights, gradients: arrays of Layout.flat_elements float32
//   flow: "in_step" | "behind" | "overlapped"     group: int, of training; 0: any samples may go together
//   memory(for_others) -> (used, peak, budget, scratch) in bytes
//   numbers: int, of 64 bits: a hash of random numbers that it draws from a fixed seed; may be missing
//   device_optimizer: what python_device_optimizer.h asks for, or None; may be missing
//   care: None, or (sizes of pass, seconds of a pass, whether forward() takes repeats), as motley::Care; may be missing
//     Then there are fault() -> None | str and empty_caches(), too
//   server: what python_server.h asks for, or None; may be missing
//   open(task) -> (most, early)        samples of a micro-batch at most; whether start() needs not all weights
//   read(at, size, wanted) -> most     start(came)     forward(at, size, wanted) -> (computed, most)
//     both with a fourth argument where each sample goes through several times: how often
//   backward(last)     sums() -> (weight, loss_sum, [sums of scores])     finish(count)     close()
//
// with the meanings of motley/device_model.h. `at`: in Task::indices. `came`: ranges of `weights` that are new. `last`:
// Task.final() is to be told what is final. Each may answer (code, message, hint) instead: it failed. They are
// called on the thread that runs the task loop; the GIL is held for their own work only.

#include <memory>

#include "bindings.h"
#include "motley/device_model.h"

namespace motley::python {

/// REQUIRES the GIL. Raises where the object is not what it should be.
std::unique_ptr<DeviceModel> make_python_model(nb::object object, Layout layout);

}  // namespace motley::python
