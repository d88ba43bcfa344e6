#include "python_optimizer.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstring>

namespace motley::python {
namespace {

using Arena = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class PythonOptimizer final : public ps::OutsideOptimizer {
 public:
  PythonOptimizer(const nb::object& optimizer, Layout layout)
      : layout_(std::move(layout)),
        python_(std::make_unique<Kept>(optimizer)),
        weights_(nb::cast<Arena>(optimizer.attr("weights"))),
        gradients_(nb::cast<Arena>(optimizer.attr("gradients"))) {
    if (weights_.size() != layout_.flat_elements() || gradients_.size() != layout_.flat_elements())
      throw nb::value_error("expected layout.flat_elements elements");
  }
  ~PythonOptimizer() override {
    const nb::gil_scoped_acquire gil;
    weights_ = {};
    gradients_ = {};
    python_.reset();
  }
  PythonOptimizer(const PythonOptimizer&) = delete;
  PythonOptimizer& operator=(const PythonOptimizer&) = delete;

  Status restore(std::uint64_t version, const State& state) override {
    return with_python([&](const nb::object& python) -> Status {
      const std::vector<std::string> names = states(python);
      if (version == 0 && state.empty()) return {};
      const bool same = state.size() == names.size() &&
                        std::ranges::all_of(names, [&](const std::string& name) { return state.contains(name); });
      if (!same) {
        return Error{ErrorCode::input, "the checkpoint has the state of another optimizer",
                     "resume with the optimizer the run was started with"};
      }
      for (const auto& [name, chunks] : state) {
        put(chunks, gradients_);
        python.attr("set_state")(name);
      }
      python.attr("restored")(version);
      return {};
    });
  }

  State state() override {
    State found;
    const Status status = with_python([&](const nb::object& python) -> Status {
      if (nb::cast<bool>(python.attr("fresh"))) return {};
      for (const std::string& name : states(python)) {
        python.attr("get_state")(name);
        for (const Chunk& chunk : layout_.chunks()) {
          const bool has = chunk.kind != ChunkKind::statistics;
          found[name].push_back(has ? SharedBytes::copy_of(std::as_bytes(piece(gradients_, chunk))) : SharedBytes());
        }
      }
      return {};
    });
    if (!status) found.clear();  // which no later start takes for the state of a version
    return found;
  }

  Status step(std::span<const ps::GroupSpec> groups, std::span<const SharedBytes> weights,
              std::span<const SharedBytes> gradients, std::span<MutableBytes> new_weights) override {
    return with_python([&](const nb::object& python) -> Status {
      put(weights, weights_);
      put(gradients, gradients_);
      std::vector<std::tuple<double, double, double, double>> rates;
      for (const ps::GroupSpec& group : groups) rates.emplace_back(group.lr, group.momentum, group.beta1, group.beta2);
      python.attr("step")(rates);
      for (ChunkId chunk = 0; chunk < new_weights.size(); ++chunk)
        std::ranges::copy(piece(weights_, layout_.chunks()[chunk]), new_weights[chunk].floats().begin());
      return {};
    });
  }

 private:
  template <class Call>
  Status with_python(const Call& call) {
    const nb::gil_scoped_acquire gil;
    try {
      return call(python_->get());
    } catch (const std::exception& error) {
      return Error{ErrorCode::internal, std::string("the optimizer of the script failed: ") + error.what(),
                   "motley train --resume goes on from before that step"};
    }
  }
  static std::vector<std::string> states(const nb::object& python) {
    return nb::cast<std::vector<std::string>>(python.attr("states"));
  }
  static std::span<float> piece(Arena& arena, const Chunk& chunk) {
    return {arena.data() + chunk.offset, chunk.elements};
  }
  void put(std::span<const SharedBytes> chunks, Arena& arena) const {
    for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk) {
      const Chunk& place = layout_.chunks()[chunk];
      if (chunks[chunk].size() == place.elements * sizeof(float))
        std::memcpy(arena.data() + place.offset, chunks[chunk].bytes().data(), chunks[chunk].size());
    }
  }

  Layout layout_;
  std::unique_ptr<Kept> python_;
  Arena weights_, gradients_;
};

}  // namespace

std::shared_ptr<ps::OutsideOptimizer> make_outside_optimizer(const nb::object& optimizer, Layout layout) {
  return std::make_shared<PythonOptimizer>(optimizer, std::move(layout));
}

}  // namespace motley::python
