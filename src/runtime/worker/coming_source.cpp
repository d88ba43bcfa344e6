#include "runtime/worker/coming_source.h"

#include <utility>

#include "wire/limits.h"

namespace motley::runtime {
namespace {

class ComingSource final : public data::Source {
 public:
  ComingSource(std::shared_ptr<const data::Source> file, std::size_t first_block, std::shared_ptr<Arrivals> arrivals)
      : file_(std::move(file)), first_block_(first_block), arrivals_(std::move(arrivals)) {}

  [[nodiscard]] const std::string& name() const override { return file_->name(); }
  [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
  [[nodiscard]] Result<SharedBytes> read(std::uint64_t offset, std::uint64_t count) const override {
    if (Status here = wait(offset, count); !here) return here.error();
    return file_->read(offset, count);
  }
  [[nodiscard]] Result<SharedBytes> view() const override { return file_->view(); }

  [[nodiscard]] bool comes() const override { return true; }
  [[nodiscard]] bool is_here(std::uint64_t offset, std::uint64_t count) const override {
    return count == 0 || arrivals_->are_here(block_of(offset), blocks_of(offset, count));
  }
  [[nodiscard]] Status wait(std::uint64_t offset, std::uint64_t count) const override {
    return count == 0 ? Status() : arrivals_->wait(block_of(offset), blocks_of(offset, count));
  }

 private:
  [[nodiscard]] std::size_t block_of(std::uint64_t offset) const noexcept {
    return first_block_ + static_cast<std::size_t>(offset / wire::kBlockBytesMax);
  }
  [[nodiscard]] std::size_t blocks_of(std::uint64_t offset, std::uint64_t count) const noexcept {
    return block_of(offset + count - 1) + 1 - block_of(offset);
  }

  const std::shared_ptr<const data::Source> file_;
  const std::size_t first_block_;
  const std::shared_ptr<Arrivals> arrivals_;
};

}  // namespace

Result<std::shared_ptr<const data::Source>> open_coming(const std::string& path, std::size_t first_block,
                                                        std::shared_ptr<Arrivals> arrivals) {
  Result<std::shared_ptr<const data::Source>> file = data::open_source(path);
  if (!file) return file;
  return std::shared_ptr<const data::Source>(
      std::make_shared<ComingSource>(std::move(*file), first_block, std::move(arrivals)));
}

}  // namespace motley::runtime
