#include "python_residence.h"

#include <algorithm>
#include <tuple>

namespace motley::python {

template <class Call>
auto PythonResidence::with_python(ErrorCode code, const Call& call) -> decltype(call(nb::object())) {
  const nb::gil_scoped_acquire gil;
  try {
    return call(python_.get());
  } catch (const std::exception& error) {
    whole_ = false;
    return Error{code, std::string("the device: ") + error.what(), ""};
  }
}

void PythonResidence::put(std::span<const SharedBytes> chunks, std::span<float> flat) const {
  for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk) {
    const std::span<float> place = flat.subspan(layout_.chunks()[chunk].offset, layout_.chunks()[chunk].elements);
    if (chunks[chunk].empty()) std::ranges::fill(place, 0.0F);
    std::ranges::copy(chunks[chunk].floats(), place.begin());
  }
}

std::vector<SharedBytes> PythonResidence::copy_of(std::span<const float> flat, bool statistics) const {
  std::vector<SharedBytes> chunks;
  for (const Chunk& chunk : layout_.chunks()) {
    const bool has = statistics || chunk.kind != ChunkKind::statistics;
    chunks.push_back(has ? SharedBytes::copy_of(std::as_bytes(flat.subspan(chunk.offset, chunk.elements)))
                         : SharedBytes());
  }
  return chunks;
}

// Whatever goes wrong here: there is another way.
Status PythonResidence::settle(const ps::Snapshot& state, ps::OptimizerKind kind) {
  whole_ = true;
  Status settled = with_python(ErrorCode::memory, [&](const nb::object& python) -> Status {
    put(state.weights, weights_);
    python.attr("settle")(kind == ps::OptimizerKind::sgd ? "sgd" : "adam");
    states_.clear();
    for (const auto& [name, chunks] : state.optimizer) {
      put(chunks, gradients_);
      python.attr("set_state")(name);
      states_.push_back(name);
    }
    return {};
  });
  if (!settled) leave();
  return settled;
}

Result<double> PythonResidence::reduce(double weight, std::uint64_t samples) {
  return with_python(ErrorCode::internal, [&](const nb::object& python) -> Result<double> {
    return nb::cast<double>(python.attr("reduce")(weight, samples));
  });
}

Status PythonResidence::update(std::span<const ps::StepScalars> groups, float factor) {
  return with_python(ErrorCode::internal, [&](const nb::object& python) -> Status {
    nb::list numbers;
    for (const ps::StepScalars& group : groups) {
      numbers.append(nb::make_tuple(group.lr, group.weight_decay, group.keep, group.momentum, group.fresh, group.beta2,
                                    group.fresh2, group.correction, group.eps, group.nesterov));
    }
    python.attr("update")(numbers, factor);
    return {};
  });
}

Result<ps::Snapshot> PythonResidence::bring() {
  if (!whole_) return Error{ErrorCode::internal, "weights and state on the device are of no use", ""};
  return with_python(ErrorCode::internal, [&](const nb::object& python) -> Result<ps::Snapshot> {
    ps::Snapshot found;
    python.attr("get_weights")();
    found.weights = copy_of(weights_, true);
    for (const std::string& name : states_) {
      python.attr("get_state")(name);
      found.optimizer[name] = copy_of(gradients_, false);
    }
    return found;
  });
}

void PythonResidence::leave() {
  static_cast<void>(with_python(ErrorCode::internal, [&](const nb::object& python) -> Status {
    python.attr("leave")();
    return {};
  }));
}

}  // namespace motley::python
