#include "store/listed_order.h"

#include <charconv>
#include <string>

#include "store/file.h"

namespace motley::store {
namespace {

constexpr std::uint64_t kListBytesMax = std::uint64_t{4} << 30;

}  // namespace

Status apply_listed_order(const std::filesystem::path& run_dir, std::uint64_t epoch,
                          std::span<std::uint64_t> positions) {
  const std::filesystem::path orders = run_dir / "orders";
  std::error_code ignored;
  if (positions.empty() || !std::filesystem::is_directory(orders, ignored)) return {};
  const std::filesystem::path path = orders / (std::to_string(epoch) + ".txt");
  const Result<std::string> text = read_whole_file(path, kListBytesMax);
  if (!text) return text.error();
  std::vector<std::uint64_t> listed;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at != end) {
    std::uint64_t sample = 0;
    const auto read = std::from_chars(at, end, sample);
    if (read.ec != std::errc{} || read.ptr == end || *read.ptr != '\n') {
      return Error{ErrorCode::input,
                   path.string() + ": expected a sample number in line " + std::to_string(listed.size() + 1) +
                       ", found something else",
                   "restore the file"};
    }
    listed.push_back(sample);
    at = read.ptr + 1;
  }
  for (std::uint64_t& position : positions) {
    if (position >= listed.size()) {
      return Error{ErrorCode::input,
                   path.string() + ": expected more than " + std::to_string(position) + " samples, found " +
                       std::to_string(listed.size()),
                   "restore the file"};
    }
    position = listed[position];
  }
  return {};
}

}  // namespace motley::store
