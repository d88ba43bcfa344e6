// Lists of files of a head: whatever is taken is written in the same way again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "blocks/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = motley::blocks::parse_manifest(text);
  if (!manifest.ok()) return 0;
  MOTLEY_ASSERT(motley::blocks::to_text(*manifest) == text);
  for (const motley::blocks::Listed& file : manifest->files)
    for (std::size_t block = 0; block < file.count(); ++block) MOTLEY_ASSERT(file.bytes(block) > 0);
  return 0;
}
