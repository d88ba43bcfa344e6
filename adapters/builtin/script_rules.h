#pragma once
// What a TorchScript file may be and do, as far as that can be said without torch: it comes from another machine, and
// is a program. Who loads one asks in this order: of its first bytes, of each record of the archive, and once torch has
// loaded it of each operator; only then is anything of it run. One file an object, one thread.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "motley/result.h"

namespace motley::builtin {

inline constexpr const char* kHowToWriteScripts = "write the file with torch.jit.script(model).save(path)";

/// What torch said of a file of so many bytes that it could not load; that may repeat what is in the file.
Error unreadable_script(std::uint64_t bytes, const std::string& why);

class ScriptRules {
 public:
  /// torch takes what is no archive for one of its other formats. Errors: input.
  static Status check_start(std::string_view bytes);
  /// Whether its content is text, which check_text() is to see. Errors: input.
  Result<bool> check_record(const std::string& name, std::uint64_t bytes);
  /// Loading it runs nothing of the file: no __setstate__, no class of a library. Errors: input.
  static Status check_text(std::string text);

  /// What the functions of the file do, by the qualified name of an operator ("aten::conv2d") or of a value's type.
  void uses_operator(const std::string& name);
  void uses_type(std::string_view name);
  void calls_library();
  /// All of it works on values alone. Errors: input; names what does not.
  [[nodiscard]] Status check_uses() const;

 private:
  std::set<std::string> records_, refused_;
};

}  // namespace motley::builtin
