#include "python_device_optimizer.h"

#include "tensor/flat_chunks.h"

namespace motley::python {

template <class Call>
auto PythonDeviceOptimizer::with_python(ErrorCode code, const Call& call) -> decltype(call(nb::object())) {
  const nb::gil_scoped_acquire gil;
  try {
    return call(python_.get());
  } catch (const std::exception& error) {
    whole_ = false;
    return error_of(error, "the device", code);
  }
}

// Whatever goes wrong here: there is another way.
Status PythonDeviceOptimizer::settle(const Snapshot& state, OptimizerKind kind) {
  whole_ = true;
  Status settled = with_python(ErrorCode::memory, [&](const nb::object& python) -> Status {
    put_chunks(layout_, state.weights, weights_);
    python.attr("settle")(kind == OptimizerKind::sgd ? "sgd" : "adam");
    states_.clear();
    for (const auto& [name, chunks] : state.optimizer) {
      put_chunks(layout_, chunks, gradients_);
      python.attr("set_state")(name);
      states_.push_back(name);
    }
    return {};
  });
  if (!settled) leave();
  return settled;
}

Result<StepNumbers> PythonDeviceOptimizer::reduce(double weight, std::uint64_t samples) {
  return with_python(ErrorCode::io, [&](const nb::object& python) -> Result<StepNumbers> {
    const auto [loss_sum, norm] = nb::cast<std::pair<double, double>>(python.attr("reduce")(weight, samples));
    return StepNumbers{loss_sum, norm};
  });
}

Status PythonDeviceOptimizer::update(std::span<const StepScalars> groups, float factor) {
  return with_python(ErrorCode::io, [&](const nb::object& python) -> Status {
    nb::list numbers;
    for (const StepScalars& group : groups) {
      numbers.append(nb::make_tuple(group.lr, group.weight_decay, group.keep, group.momentum, group.fresh, group.beta2,
                                    group.fresh2, group.correction, group.eps, group.nesterov));
    }
    python.attr("update")(numbers, factor);
    return {};
  });
}

bool PythonDeviceOptimizer::put_aside() {
  const Result<bool> done = with_python(ErrorCode::memory, [&](const nb::object& python) -> Result<bool> {
    return nb::cast<bool>(python.attr("put_aside")());
  });
  return done && *done;
}

// The arrays are nobody else's while steps go on at the device. Python is needed for the way from there alone.
Result<Snapshot> PythonDeviceOptimizer::download(bool aside) {
  if (!whole_) return Error{ErrorCode::io, "weights and state on the device are of no use", ""};
  Snapshot found;
  const auto came = [&](const char* call, const auto&... name) -> Status {
    return with_python(ErrorCode::io, [&](const nb::object& python) -> Status {
      python.attr(call)(name..., aside);
      return {};
    });
  };
  if (Status weights = came("get_weights"); !weights) return weights.error();
  found.weights = copy_chunks(layout_, weights_, true);
  for (const std::string& name : states_) {
    if (Status state = came("get_state", name); !state) return state.error();
    found.optimizer[name] = copy_chunks(layout_, gradients_, false);
  }
  return found;
}

void PythonDeviceOptimizer::leave() {
  static_cast<void>(with_python(ErrorCode::io, [&](const nb::object& python) -> Status {
    python.attr("leave")();
    return {};
  }));
}

}  // namespace motley::python
