#include "torch/script_check.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "builtin/script_rules.h"

namespace motley::torch_adapter {
namespace {

std::string_view name_of(const c10::TypePtr& type) {
  const auto named = type->cast<c10::NamedType>();
  return named && named->name() ? std::string_view(named->name()->qualifiedName()) : std::string_view();
}

void look_at_uses(torch::jit::Block* block, builtin::ScriptRules& rules) {
  for (torch::jit::Node* node : block->nodes()) {
    rules.uses_operator(node->kind().toQualString());
    for (const auto values : {node->inputs(), node->outputs()})
      for (const torch::jit::Value* value : values) rules.uses_type(name_of(value->type()));
    for (torch::jit::Block* inner : node->blocks()) look_at_uses(inner, rules);
  }
}

}  // namespace

Status check_archive(std::istream& file) {
  const std::istream::pos_type begin = file.tellg();
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  file.clear();
  file.seekg(begin);
  builtin::ScriptRules rules;
  if (Status archive = rules.check_start({magic.data(), magic.size()}); !archive) return archive;
  caffe2::serialize::PyTorchStreamReader archive(&file);
  for (const std::string& record : archive.getAllRecords()) {
    const Result<bool> text = rules.check_record(record, archive.getRecordSize(record));
    if (!text) return text.error();
    if (!*text) continue;
    const auto [bytes, size] = archive.getRecord(record);
    if (Status harmless = rules.check_text({static_cast<const char*>(bytes.get()), size}); !harmless) return harmless;
  }
  file.clear();
  file.seekg(begin);
  return {};
}

Status check_operators(const torch::jit::Module& module) {
  builtin::ScriptRules rules;
  for (torch::jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    function->ensure_defined();
    if (const torch::jit::GraphFunction* written = torch::jit::tryToGraphFunction(*function))
      look_at_uses(written->graph()->block(), rules);
    else
      rules.calls_library();
  }
  return rules.check_uses();
}

}  // namespace motley::torch_adapter
