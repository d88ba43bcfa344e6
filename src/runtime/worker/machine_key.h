#pragma once
// By what a head knows this machine again, whatever name it gives: strikes and invitations for one machine are bound
// to it.

#include <filesystem>

#include "transport/crypto.h"

namespace motley::runtime {

/// The key of this user on this machine: read from `file`, or made and kept there. Where that cannot be (no home, a
/// full disk, a file that others may write to) one that lasts as long as this process.
transport::Identity machine_identity(const std::filesystem::path& file);

}  // namespace motley::runtime
