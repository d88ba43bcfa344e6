#include "python_optimizer.h"

#include <nanobind/ndarray.h>

#include <algorithm>

#include "tensor/flat_chunks.h"

namespace motley::python {
namespace {

using Values = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class PythonOptimizer final : public ps::OutsideOptimizer {
 public:
  PythonOptimizer(const nb::object& optimizer, Layout layout, std::string hint)
      : layout_(std::move(layout)),
        hint_(std::move(hint)),
        python_(std::make_unique<Kept>(optimizer)),
        weights_(nb::cast<Values>(optimizer.attr("weights"))),
        gradients_(nb::cast<Values>(optimizer.attr("gradients"))) {
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
      const bool same = state.size() == names.size() && std::ranges::all_of(names, [&](const std::string& name) {
                          return state.contains(name) && fits(state.at(name));
                        });
      if (!same) {
        return Error{ErrorCode::input, "the checkpoint has the state of another optimizer",
                     "resume with the optimizer the run was started with"};
      }
      for (const auto& [name, chunks] : state) {
        put_chunks(layout_, chunks, flat(gradients_));
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
        found[name] = copy_chunks(layout_, flat(gradients_), false);
      }
      return {};
    });
    if (!status) found.clear();  // which no later start takes for the state of a version
    return found;
  }

  Status step(std::span<const ps::GroupSpec> groups, std::span<const SharedBytes> weights,
              std::span<const SharedBytes> gradients, std::span<MutableBytes> new_weights) override {
    return with_python([&](const nb::object& python) -> Status {
      put_chunks(layout_, weights, flat(weights_));
      put_chunks(layout_, gradients, flat(gradients_));
      std::vector<std::tuple<double, double, double, double>> rates;
      for (const ps::GroupSpec& group : groups) rates.emplace_back(group.lr, group.momentum, group.beta1, group.beta2);
      python.attr("step")(rates);
      for (ChunkId chunk = 0; chunk < new_weights.size(); ++chunk) {
        const Chunk& place = layout_.chunks()[chunk];
        std::ranges::copy(flat(weights_).subspan(place.offset, place.elements), new_weights[chunk].floats().begin());
      }
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
      return error_of(error, "the optimizer of the script failed", ErrorCode::input, hint_);
    }
  }
  static std::vector<std::string> states(const nb::object& python) {
    return nb::cast<std::vector<std::string>>(python.attr("states"));
  }
  [[nodiscard]] bool fits(std::span<const SharedBytes> chunks) const {
    return std::ranges::equal(chunks, layout_.chunks(), [](const SharedBytes& chunk, const Chunk& place) {
      return chunk.empty() || chunk.size() == place.elements * sizeof(float);
    });
  }
  static std::span<float> flat(Values& arena) { return {arena.data(), arena.size()}; }

  Layout layout_;
  std::string hint_;
  std::unique_ptr<Kept> python_;
  Values weights_, gradients_;
};

}  // namespace

std::shared_ptr<ps::OutsideOptimizer> make_outside_optimizer(const nb::object& optimizer, Layout layout,
                                                             std::string hint) {
  return std::make_shared<PythonOptimizer>(optimizer, std::move(layout), std::move(hint));
}

}  // namespace motley::python
