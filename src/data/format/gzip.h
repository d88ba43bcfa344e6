#pragma once
// gzip (RFC 1952) files of one member, unpacked in memory. Pure.

#include <span>
#include <string>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::data {

[[nodiscard]] bool looks_like_gzip(std::span<const std::byte> bytes) noexcept;

/// Unpacks exactly as many bytes as the file's trailer announces; an announcement that deflate could not keep is
/// refused before anything is allocated. `name` is for messages.
Result<SharedBytes> gunzip(std::span<const std::byte> bytes, const std::string& name);

}  // namespace motley::data
