#pragma once
// Who may do what with a file, as the system has it.

#include <filesystem>

namespace motley::store::test {

/// Nobody else may read it or write to it.
void expect_for_its_owner(const std::filesystem::path& path);
/// Somebody else may write to it from now on.
void let_others_write(const std::filesystem::path& path);

}  // namespace motley::store::test
