#include "torch/script_check.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "torch/script_operators.h"
#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::torch_adapter {
namespace {

constexpr const char* kWhy = "a model file may compute with tensors and nothing else; see docs/security.md";
constexpr std::size_t kNamedMax = 5;
// Text and pickles of models are some kilobytes; their tensors lie in records of their own.
constexpr std::size_t kTextBytesMax = std::size_t{64} << 20;

// Of a library that is not in the file, and so of whatever it does.
constexpr std::string_view kLibraryClasses = "torch.classes";

Error refused(const std::string& found) {
  // Names of records are the file's own.
  const std::string shown =
      wire::to_printable(wire::to_utf8(found, wire::kStringBytesMax), wire::kSentenceCharactersMax);
  return {ErrorCode::input, "the TorchScript file " + shown + ", which is refused", kWhy};
}

bool holds_tensors(std::string_view record) { return record.starts_with("data/") || record.starts_with("constants/"); }

std::string in_lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

// Pickles write "module\nname" for module.name.
void join_names(std::string& text) { std::replace(text.begin(), text.end(), '\n', '.'); }

std::string_view name_of(const c10::TypePtr& type) {
  const auto named = type->cast<c10::NamedType>();
  return named && named->name() ? std::string_view(named->name()->qualifiedName()) : std::string_view();
}

// Operators as people write them: torch.conv2d, ops.prim.rpc_async.
std::string as_written(const std::string& operation) {
  constexpr std::string_view kAten = "aten::";
  if (operation.starts_with(kAten)) return "torch." + operation.substr(kAten.size());
  if (operation == "prim::Print") return "print";
  const std::size_t colons = std::min(operation.find("::"), operation.size());
  return "ops." + operation.substr(0, colons) + "." + operation.substr(std::min(colons + 2, operation.size()));
}

void look_for_refused(torch::jit::Block* block, std::set<std::string>& found) {
  const auto of_library = [](const torch::jit::Value* value) {
    return name_of(value->type()).find(kLibraryClasses) != std::string_view::npos;
  };
  for (torch::jit::Node* node : block->nodes()) {
    if (const std::string name = node->kind().toQualString(); !works_on_values_alone(name))
      found.insert(as_written(name));
    if (std::ranges::any_of(node->inputs(), of_library) || std::ranges::any_of(node->outputs(), of_library))
      found.insert("classes of a library");
    for (torch::jit::Block* inner : node->blocks()) look_for_refused(inner, found);
  }
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t said = 0;
  for (const std::string& name : names) {
    if (said == kNamedMax) return text + " and " + std::to_string(names.size() - said) + " more";
    text += (said == 0 ? "" : ", ") + name;
    ++said;
  }
  return text;
}

}  // namespace

Status check_archive(std::istream& file) {
  const std::istream::pos_type begin = file.tellg();
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  file.clear();
  file.seekg(begin);
  // torch looks at the first bytes as well, and takes what is no archive for one of its other formats.
  if (std::string_view(magic.data(), magic.size()) != std::string_view("PK\x03\x04", 4)) {
    return Error{ErrorCode::input, "torch cannot read the model file as TorchScript: it is no zip archive",
                 "write the file with torch.jit.script(model).save(path)"};
  }
  caffe2::serialize::PyTorchStreamReader archive(&file);
  std::set<std::string> seen;
  for (const std::string& record : archive.getAllRecords()) {
    // The reader looks for names without regard to case: which of two it would find is not known.
    if (!seen.insert(in_lower_case(record)).second) return refused("has two records " + record);
    if (holds_tensors(record)) continue;
    if (archive.getRecordSize(record) > kTextBytesMax) return refused("has " + record + " of more than 64 MiB");
    const auto [bytes, size] = archive.getRecord(record);
    std::string text(static_cast<const char*>(bytes.get()), size);
    join_names(text);
    if (text.find("__setstate__") != std::string::npos)
      return refused("has a class with __setstate__, a method that is run when it is loaded");
    if (text.find(kLibraryClasses) != std::string::npos)
      return refused("has an object of a library (" + std::string(kLibraryClasses) + ")");
  }
  file.clear();
  file.seekg(begin);
  return {};
}

Status check_operators(const torch::jit::Module& module) {
  std::set<std::string> found;
  for (torch::jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    function->ensure_defined();
    const torch::jit::GraphFunction* written = torch::jit::tryToGraphFunction(*function);
    if (written == nullptr) {
      found.insert("functions of a library");
    } else {
      look_for_refused(written->graph()->block(), found);
    }
  }
  if (found.empty()) return {};
  return refused("uses " + listed(found));
}

}  // namespace motley::torch_adapter
