#include "builtin/script_rules.h"

#include <algorithm>

#include "builtin/script_operators.h"
#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::builtin {
namespace {

constexpr const char* kWhy = "a model file may compute with tensors and nothing else; see docs/security.md";
constexpr std::size_t kNamedMax = 5;
// Text and pickles of models are some kilobytes; their tensors lie in records of their own.
constexpr std::uint64_t kTextBytesMax = std::uint64_t{64} << 20;

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

// Operators as people write them: torch.conv2d, ops.prim.rpc_async.
std::string as_written(const std::string& operation) {
  constexpr std::string_view kAten = "aten::";
  if (operation.starts_with(kAten)) return "torch." + operation.substr(kAten.size());
  if (operation == "prim::Print") return "print";
  const std::size_t colons = std::min(operation.find("::"), operation.size());
  return "ops." + operation.substr(0, colons) + "." + operation.substr(std::min(colons + 2, operation.size()));
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

Error unreadable_script(std::uint64_t bytes, const std::string& why) {
  const std::size_t begin = std::min(why.find_first_not_of('\n'), why.size());
  const std::string line = why.substr(begin, why.find('\n', begin) - begin);
  return {ErrorCode::input,
          "torch cannot read the model file as TorchScript (" + std::to_string(bytes) + " bytes): " +
              wire::to_printable(wire::to_utf8(line, wire::kStringBytesMax), wire::kSentenceCharactersMax),
          kHowToWriteScripts};
}

Status ScriptRules::check_start(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) return {};
  return Error{ErrorCode::input, "torch cannot read the model file as TorchScript: it is no zip archive",
               kHowToWriteScripts};
}

Result<bool> ScriptRules::check_record(const std::string& name, std::uint64_t bytes) {
  // torch's reader looks for names without regard to case: which of two it would find is not known.
  if (!records_.insert(in_lower_case(name)).second) return refused("has two records " + name);
  if (holds_tensors(name)) return false;
  if (bytes > kTextBytesMax) return refused("has " + name + " of more than 64 MiB");
  return true;
}

Status ScriptRules::check_text(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '.');  // pickles write "module\nname" for module.name
  if (text.find("__setstate__") != std::string::npos)
    return refused("has a class with __setstate__, a method that is run when it is loaded");
  if (text.find(kLibraryClasses) != std::string::npos)
    return refused("has an object of a library (" + std::string(kLibraryClasses) + ")");
  return {};
}

void ScriptRules::uses_operator(const std::string& name) {
  if (!works_on_values_alone(name)) refused_.insert(as_written(name));
}

void ScriptRules::uses_type(std::string_view name) {
  if (name.find(kLibraryClasses) != std::string_view::npos) refused_.insert("classes of a library");
}

void ScriptRules::calls_library() { refused_.insert("functions of a library"); }

Status ScriptRules::check_uses() const {
  if (refused_.empty()) return {};
  return refused("uses " + listed(refused_));
}

}  // namespace motley::builtin
