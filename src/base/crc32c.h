#pragma once
// CRC-32C (Castagnoli), as iSCSI and LevelDB use it; SSE4.2 or ARM CRC instructions where the processor has them.

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

/// The checksum of `bytes`; to go on over several pieces pass the result so far.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far = 0) noexcept;

}  // namespace motley
