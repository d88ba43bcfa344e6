#include "torch/save_script.h"

#include <torch/script.h>

#include <algorithm>
#include <map>

namespace motley::torch_adapter {
namespace {

class ModuleTree {
 public:
  explicit ModuleTree(const std::string& class_name) { modules_.emplace("", new_module(class_name)); }

  torch::jit::Module& root() { return modules_.at(""); }

  void add(const std::string& name, const at::Tensor& tensor) {
    const std::size_t dot = name.rfind('.');
    module_of(dot == std::string::npos ? "" : name.substr(0, dot))
        .register_parameter(name.substr(dot + 1), tensor, false);
  }

 private:
  torch::jit::Module new_module(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    torch::jit::Module module(c10::QualifiedName("__torch__.motley." + name), unit_, true);
    module.register_attribute("training", c10::BoolType::get(), true);
    return module;
  }
  torch::jit::Module& module_of(const std::string& path) {
    if (const auto found = modules_.find(path); found != modules_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    torch::jit::Module& parent = module_of(dot == std::string::npos ? "" : path.substr(0, dot));
    torch::jit::Module& module = modules_.emplace(path, new_module(path)).first->second;
    parent.register_module(path.substr(dot + 1), module);
    return module;
  }

  std::shared_ptr<torch::jit::CompilationUnit> unit_ = std::make_shared<torch::jit::CompilationUnit>();
  std::map<std::string, torch::jit::Module> modules_;  // by path; references stay valid
};

}  // namespace

void save_script(const std::vector<NamedTensor>& parameters, const std::string& class_name, const std::string& script,
                 const std::filesystem::path& path) {
  ModuleTree tree(class_name);
  std::map<std::string, at::Tensor> copies;
  for (const NamedTensor& named : parameters) {
    const std::string& source = named.alias_of.empty() ? named.name : named.alias_of;
    at::Tensor& copy = copies[source];
    if (!copy.defined()) {
      copy = named.tensor.detach().to(at::kCPU, at::kFloat, false, true).contiguous().requires_grad_(true);
    }
    tree.add(named.name, copy);
  }
  tree.root().define(script);
  tree.root().save(path.string());
}

}  // namespace motley::torch_adapter
