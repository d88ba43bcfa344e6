#include "python_torch.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>

#include "builtin/script_rules.h"
#include "machine/processor.h"
#include "python_model.h"
#include "script_models.h"

namespace motley::python {
namespace {

using Flat = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Classes = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::bytes flat_bytes(const Layout& layout, const std::vector<SharedBytes>& weights) {
  std::vector<float> flat(layout.flat_elements());
  for (std::size_t i = 0; i < layout.chunks().size() && i < weights.size(); ++i) {
    const std::span<const float> part = weights[i].floats();
    std::copy(part.begin(), part.end(), flat.begin() + static_cast<std::ptrdiff_t>(layout.chunks()[i].offset));
  }
  return nb::bytes(flat.data(), flat.size() * sizeof(float));
}

class PythonTorch final : public cli::TorchModels {
 public:
  explicit PythonTorch(nb::handle load) : load_(load) {}

  std::string version() override {
    const nb::gil_scoped_acquire gil;
    return module() ? nb::cast<std::string>(module().attr("version")()) : std::string();
  }
  std::vector<std::pair<std::string, std::string>> facts() override {
    using Told = std::vector<std::pair<std::string, std::string>>;
    const nb::gil_scoped_acquire gil;
    return module() ? nb::cast<Told>(module().attr("facts")()) : Told();
  }
  [[nodiscard]] std::string how_to_get() const override { return "pip install torch"; }

  std::vector<runtime::Device> devices() override {
    using Told = std::vector<std::tuple<std::string, std::string, std::uint64_t, unsigned>>;
    const nb::gil_scoped_acquire gil;
    if (!module()) return {{"cpu", machine::processor_name(), machine::memory_bytes(), machine::allowed_processors()}};
    std::vector<runtime::Device> found;
    for (const auto& [name, description, memory_bytes, threads] : nb::cast<Told>(module().attr("devices")()))
      found.push_back({name, description, memory_bytes, threads});
    return found;
  }

  std::vector<std::filesystem::path> directories() override {
    const nb::gil_scoped_acquire gil;
    std::vector<std::filesystem::path> found;
    if (!module()) return found;
    for (const std::string& path : nb::cast<std::vector<std::string>>(module().attr("to_be_confined")()))
      found.emplace_back(path);
    return found;
  }

  Result<runtime::InitialState> initial_state(const builtin::ModelSpec& spec) override {
    if (Status fits = check(spec); !fits) return fits.error();
    return asked<runtime::InitialState>("building the model '" + spec.kind + "'", [&]() {
      using Told = std::tuple<Layout, Flat, std::map<std::string, nb::bytes>, bool, bool>;
      const auto [layout, flat, held, acts_on_groups, draws] = nb::cast<Told>(module().attr("initial_state")(spec));
      std::map<std::string, SharedBytes> frozen;
      for (const auto& [name, bytes] : held)
        frozen[name] = SharedBytes::copy_of({static_cast<const std::byte*>(bytes.data()), bytes.size()});
      return runtime::InitialState{layout, chunks_of(layout, {flat.data(), flat.size()}), std::move(frozen),
                                   acts_on_groups, draws};
    });
  }

  Result<std::unique_ptr<DeviceModel>> make(const builtin::ModelSpec& spec, const runtime::ModelInputs& inputs,
                                            const std::string& device, unsigned threads) override {
    if (Status fits = check(spec); !fits) return fits.error();
    for (const auto& [dataset, part] : {std::pair(inputs.train, "training"), std::pair(inputs.test, "test")}) {
      const Status right = dataset ? builtin::check_data(spec, *dataset, part) : Status();
      if (!right) return right.error();
    }
    keep_freed_memory();
    return asked<std::unique_ptr<DeviceModel>>("the model '" + spec.kind + "' on " + device, [&]() {
      const config::RunConfig& config = *inputs.config;
      nb::object made = module().attr("make")(spec, inputs.train, inputs.test, config.global_batch, config.shuffle,
                                              config.micro_batch, device, threads);
      const Layout layout = nb::cast<Layout>(made.attr("layout"));
      return make_python_model(std::move(made), layout);
    });
  }

  Status export_torchscript(const builtin::ModelSpec& spec, const Layout& layout,
                            const std::vector<SharedBytes>& weights, const std::map<std::string, SharedBytes>& frozen,
                            std::uint64_t step, const std::string& path) override {
    if (Status fits = check(spec); !fits) return fits;
    const Result<bool> done = asked<bool>("exporting the model to " + path, [&]() {
      nb::dict held;
      for (const auto& [name, bytes] : frozen) held[name.c_str()] = nb::bytes(bytes.bytes().data(), bytes.size());
      module().attr("export")(spec, layout, flat_bytes(layout, weights), held, step, path);
      return true;
    });
    return done ? Status() : done.error();
  }

  Status sample_text(const builtin::ModelSpec& spec, const Layout& layout, const std::vector<SharedBytes>& weights,
                     const builtin::SampleRequest& request, const std::function<bool(char)>& on_byte) override {
    if (Status fits = check(spec); !fits) return fits;
    const auto loaded = asked<std::shared_ptr<Kept>>("sampling from the model", [&]() {
      return std::make_shared<Kept>(module().attr("logits")(spec, flat_bytes(layout, weights)));
    });
    if (!loaded) return loaded.error();
    const auto logits = [&](std::string_view window, std::span<float> to) -> Status {
      const auto found = asked<std::vector<float>>("sampling from the model", [&]() {
        return nb::cast<std::vector<float>>((*loaded)->get()(nb::bytes(window.data(), window.size())));
      });
      if (!found) return found.error();
      if (found->size() != to.size()) return Error{ErrorCode::internal, "expected a logit for each byte", ""};
      std::ranges::copy(*found, to.begin());
      return {};
    };
    return builtin::sample_text(request, static_cast<std::size_t>(spec.gpt.block), logits, on_byte);
  }

 private:
  static Status check(const builtin::ModelSpec& spec) {
    if (spec.kind != "torchscript") return builtin::check_sizes(spec);
    const Result<builtin::Loss> loss = builtin::find_loss(spec.loss);
    return loss ? Status() : loss.error();
  }

  template <class Answer, class Ask>
  Result<Answer> asked(const std::string& what, const Ask& ask) {
    const nb::gil_scoped_acquire gil;
    try {
      return ask();
    } catch (const std::exception& raised) {
      return error_of(raised, what);
    }
  }

  /// REQUIRES the GIL.
  nb::handle module() {
    if (!asked_) {
      nb::object found = load_();
      if (!found.is_none()) module_ = found.release();  // Python keeps its modules as well
    }
    asked_ = true;
    return module_;
  }

  nb::handle load_, module_;
  bool asked_ = false;
};

std::string_view text_of(const nb::bytes& bytes) { return {static_cast<const char*>(bytes.data()), bytes.size()}; }

std::vector<std::uint64_t> numbers_of(const data::Dataset& dataset, const std::vector<std::uint64_t>& numbers) {
  if (std::ranges::any_of(numbers, [&](std::uint64_t number) { return number >= dataset.size(); }))
    throw nb::index_error();
  return numbers;
}

}  // namespace

std::shared_ptr<cli::TorchModels> python_torch(const nb::callable& load) { return std::make_shared<PythonTorch>(load); }

void bind_recipes(nb::module_& m) {
  using builtin::ModelSpec, builtin::ScriptRules;
  nb::class_<ScriptRules>(m, "ScriptRules")
      .def(nb::init<>())
      .def("check_start",
           [](ScriptRules&, const nb::bytes& bytes) { raise_if(ScriptRules::check_start(text_of(bytes))); })
      .def("check_record", [](ScriptRules& rules, const std::string& name,
                              std::uint64_t bytes) { return value_or_raise(rules.check_record(name, bytes)); })
      .def("check_text",
           [](ScriptRules&, const nb::bytes& bytes) { raise_if(ScriptRules::check_text(std::string(text_of(bytes)))); })
      .def("uses_operator", &ScriptRules::uses_operator)
      .def("uses_type", &ScriptRules::uses_type)
      .def("calls_library", &ScriptRules::calls_library)
      .def("check_uses", [](const ScriptRules& rules) { raise_if(rules.check_uses()); });
  m.def("raise_unreadable_script",
        [](std::uint64_t bytes, const std::string& why) { throw Failure(builtin::unreadable_script(bytes, why)); });
  m.def("frozen_hash", [](const nb::bytes& data) {
    return builtin::content_hash({static_cast<const std::byte*>(data.data()), data.size()});
  });
  nb::class_<ModelSpec>(m, "ModelSpec")
      .def_ro("kind", &ModelSpec::kind)
      .def_prop_ro("file", [](const ModelSpec& spec) { return nb::bytes(spec.file.bytes().data(), spec.file.size()); })
      .def_ro("loss", &ModelSpec::loss)
      .def_ro("sample_shape", &ModelSpec::sample_shape)
      .def_ro("outputs", &ModelSpec::outputs)
      .def_ro("targets", &ModelSpec::targets)
      .def_ro("group_samples", &ModelSpec::group_samples)
      .def_ro("seed", &ModelSpec::seed)
      .def_ro("hidden", &ModelSpec::hidden)
      .def_prop_ro("gpt",
                   [](const ModelSpec& spec) {
                     return std::tuple(spec.gpt.block, spec.gpt.layers, spec.gpt.heads, spec.gpt.width);
                   })
      .def("group_of", &builtin::group_of, nb::arg("name"))
      .def("micro_batch", &builtin::micro_batch, nb::arg("accelerator"));
  nb::class_<data::Dataset>(m, "Dataset")
      .def_prop_ro("size", &data::Dataset::size)
      .def_prop_ro("sample_shape", &data::Dataset::sample_shape)
      .def_prop_ro("classes", [](const data::Dataset& set) { return set.target_kind() == data::TargetKind::classes; })
      .def_prop_ro("target_elements", &data::Dataset::target_elements)
      .def(
          "gather",
          [](const data::Dataset& set, const std::vector<std::uint64_t>& numbers, Flat x) {
            const std::vector<std::uint64_t> known = numbers_of(set, numbers);
            const nb::gil_scoped_release no_gil;
            set.gather(known, {x.data(), x.size()});
          },
          nb::arg("numbers"), nb::arg("x"))
      .def(
          "gather_classes",
          [](const data::Dataset& set, const std::vector<std::uint64_t>& numbers, Classes y) {
            set.gather_classes(numbers_of(set, numbers), {y.data(), y.size()});
          },
          nb::arg("numbers"), nb::arg("y"))
      .def(
          "gather_values",
          [](const data::Dataset& set, const std::vector<std::uint64_t>& numbers, Flat y) {
            set.gather_values(numbers_of(set, numbers), {y.data(), y.size()});
          },
          nb::arg("numbers"), nb::arg("y"));
}

}  // namespace motley::python
