#include "python_torch_facts.h"

#include "machine/processor.h"

namespace motley::python {
namespace {

class PythonTorchFacts final : public cli::TorchFacts {
 public:
  explicit PythonTorchFacts(nb::handle load) : load_(load) {}

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

 private:
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

}  // namespace

std::shared_ptr<cli::TorchFacts> python_torch_facts(const nb::callable& load) {
  return std::make_shared<PythonTorchFacts>(load);
}

}  // namespace motley::python
