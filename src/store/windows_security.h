#pragma once
// Of Windows' security what the store needs: who runs this process, and what is for that user alone. Any thread.

#include <string>

namespace motley::store {

/// Of the user who runs this process, as S-1-5-…; empty where the system does not tell.
std::wstring user_sid();

}  // namespace motley::store
