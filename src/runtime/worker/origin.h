#pragma once
// The addresses that the files of a set are from, as one more source of its blocks beside the head: asked over HTTP by
// whoever knows that, and no host that this machine's user did not name (docs/design/0050-the-origin-as-a-source.md).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "blocks/sources.h"
#include "motley/result.h"

namespace motley::runtime {

class BlockFetch;

struct OriginFile {
  std::string address{};  // http:// or https://
  std::uint64_t size = 0;
};

class Origin {
 public:
  /// Nothing is asked for any more.
  virtual ~Origin() = default;
  /// For a block of that file, which begins at `offset`.
  virtual void ask(std::size_t file, std::uint64_t offset, const blocks::Sources::Open& block) = 0;
};

/// What comes, and why nothing more does, is said to the fetch. `allowed`: whom the user named, see
/// JoinOptions::origins. Errors: usage, where those cannot be.
using OpenOrigin = std::function<Result<std::unique_ptr<Origin>>(
    const std::vector<OriginFile>& files, const std::vector<std::string>& allowed, std::shared_ptr<BlockFetch> fetch)>;

}  // namespace motley::runtime
