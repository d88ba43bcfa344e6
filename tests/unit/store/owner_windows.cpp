#include <windows.h>

#include <aclapi.h>
#include <gtest/gtest.h>

#include <array>

#include "owner.h"

namespace motley::store::test {
namespace {

std::array<std::byte, SECURITY_MAX_SID_SIZE> everybody() {
  std::array<std::byte, SECURITY_MAX_SID_SIZE> sid{};
  DWORD size = sid.size();
  EXPECT_NE(::CreateWellKnownSid(WinWorldSid, nullptr, sid.data(), &size), 0);
  return sid;
}

}  // namespace

void expect_for_its_owner(const std::filesystem::path& path) {
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  ASSERT_EQ(::GetNamedSecurityInfoW(path.c_str(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr, nullptr, &list,
                                    nullptr, &descriptor),
            DWORD{ERROR_SUCCESS});
  ASSERT_NE(list, nullptr);
  auto sid = everybody();
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    ASSERT_NE(::GetAce(list, i, &entry), 0);
    auto* allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    EXPECT_FALSE(allowed->Header.AceType == ACCESS_ALLOWED_ACE_TYPE && ::EqualSid(&allowed->SidStart, sid.data()) != 0);
  }
  ::LocalFree(descriptor);
}

void let_others_write(const std::filesystem::path& path) {
  auto sid = everybody();
  EXPLICIT_ACCESSW access{};
  access.grfAccessPermissions = FILE_GENERIC_READ | FILE_GENERIC_WRITE;
  access.grfAccessMode = GRANT_ACCESS;
  access.Trustee.TrusteeForm = TRUSTEE_IS_SID;
  access.Trustee.ptstrName = reinterpret_cast<wchar_t*>(sid.data());
  PACL list = nullptr;
  PACL before = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  std::wstring name = path.wstring();
  ASSERT_EQ(::GetNamedSecurityInfoW(name.data(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr, nullptr, &before,
                                    nullptr, &descriptor),
            DWORD{ERROR_SUCCESS});
  ASSERT_EQ(::SetEntriesInAclW(1, &access, before, &list), DWORD{ERROR_SUCCESS});
  EXPECT_EQ(
      ::SetNamedSecurityInfoW(name.data(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr, nullptr, list, nullptr),
      DWORD{ERROR_SUCCESS});
  ::LocalFree(list);
  ::LocalFree(descriptor);
}

}  // namespace motley::store::test
