#include <windows.h>

#include <aclapi.h>
#include <io.h>
#include <sddl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/windows_errors.h"
#include "store/possession.h"
#include "store/windows_security.h"

namespace motley::store {
namespace {

constexpr DWORD kWrites = FILE_WRITE_DATA | FILE_APPEND_DATA | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;

struct Freed {
  void operator()(void* memory) const noexcept { ::LocalFree(memory); }
};

/// What `kind` says of the user who runs this process: TOKEN_USER and the like. They point into this very memory, so it
/// is handed on and never copied.
std::vector<std::byte> token_information(TOKEN_INFORMATION_CLASS kind) {
  HANDLE token = nullptr;
  if (::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token) == 0) return {};
  DWORD size = 0;
  ::GetTokenInformation(token, kind, nullptr, 0, &size);
  std::vector<std::byte> found(size);
  const bool told = ::GetTokenInformation(token, kind, found.data(), size, &size) != 0;
  ::CloseHandle(token);
  if (!told) found.clear();
  return found;
}

/// Whether a file that has this owner, or lets this one write, is in the hands of this user.
bool is_ours(PSID sid) {
  const std::vector<std::byte> user = token_information(TokenUser);
  const std::vector<std::byte> owner = token_information(TokenOwner);  // of what it makes; administrators' as one
  return (!user.empty() && ::EqualSid(sid, reinterpret_cast<const TOKEN_USER*>(user.data())->User.Sid) != 0) ||
         (!owner.empty() && ::EqualSid(sid, reinterpret_cast<const TOKEN_OWNER*>(owner.data())->Owner) != 0);
}

bool is_trusted(PSID sid) {
  return is_ours(sid) || ::IsWellKnownSid(sid, WinLocalSystemSid) != 0 ||
         ::IsWellKnownSid(sid, WinBuiltinAdministratorsSid) != 0 || ::IsWellKnownSid(sid, WinCreatorOwnerSid) != 0 ||
         ::IsWellKnownSid(sid, WinCreatorOwnerRightsSid) != 0;
}

bool others_write(PACL list) {
  if (list == nullptr) return true;  // everybody may do everything
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (::GetAce(list, i, &entry) == 0) return true;
    const auto* header = static_cast<const ACE_HEADER*>(entry);
    if (header->AceType != ACCESS_ALLOWED_ACE_TYPE || (header->AceFlags & INHERIT_ONLY_ACE) != 0) continue;
    auto* allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if ((allowed->Mask & kWrites) != 0 && !is_trusted(&allowed->SidStart)) return true;
  }
  return false;
}

Result<Possession> possession_of(HANDLE handle, const std::filesystem::path& path) {
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  const DWORD failed = ::GetSecurityInfo(handle, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                                         &owner, nullptr, &list, nullptr, &descriptor);
  if (failed != ERROR_SUCCESS) return system_error("look at", path, errno_of_windows(failed));
  const std::unique_ptr<void, Freed> memory(descriptor);
  if (owner == nullptr) return Possession{false, false, true};
  return Possession{is_ours(owner), is_trusted(owner), others_write(list)};
}

}  // namespace

std::wstring user_sid() {
  const std::vector<std::byte> user = token_information(TokenUser);
  wchar_t* text = nullptr;
  if (user.empty() ||
      ::ConvertSidToStringSidW(reinterpret_cast<const TOKEN_USER*>(user.data())->User.Sid, &text) == 0) {
    return {};
  }
  const std::unique_ptr<wchar_t, Freed> memory(text);
  return text;
}

Result<Possession> possession_of(const std::filesystem::path& path) {
  const HANDLE handle =
      ::CreateFileW(path.c_str(), READ_CONTROL, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                    OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return system_error("look at", path, errno_of_windows(::GetLastError()));
  Result<Possession> found = possession_of(handle, path);
  ::CloseHandle(handle);
  return found;
}

Result<Possession> possession_of(const File& file) {
  return possession_of(reinterpret_cast<HANDLE>(::_get_osfhandle(file.descriptor())), file.path());
}

std::string how_to_close(const std::filesystem::path& path) {
  return "icacls \"" + path.string() + "\" /inheritance:r /grant:r \"%USERNAME%\":F";
}

}  // namespace motley::store
