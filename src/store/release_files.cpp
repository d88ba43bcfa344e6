#include "store/release_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/little_endian.h"
#include "store/file.h"
#include "wire/limits.h"

namespace motley::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReleasedFile = "released";
constexpr std::string_view kStatePrefix = "loss-state-";
constexpr std::string_view kStateMagic = "MTLYLST1";
constexpr std::size_t kHeaderBytes = 8 + 8 + 8 + 4;  // magic, number, size, CRC-32C of the bytes

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

fs::path state_path(const fs::path& run_dir, std::uint64_t version) {
  return run_dir / (std::string(kStatePrefix) + std::to_string(version));
}

/// Versions from which one holds, in their order.
std::vector<std::uint64_t> state_versions(const fs::path& run_dir) {
  std::vector<std::uint64_t> versions;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kStatePrefix)) continue;
    if (const auto version = number_in(name.substr(kStatePrefix.size()))) versions.push_back(*version);
  }
  std::ranges::sort(versions);
  return versions;
}

Status replace_unsynced(const fs::path& path, std::span<const SharedBytes> parts) {
  const fs::path fresh = hidden_beside(path, "tmp");
  Result<File> file = File::open(fresh, File::Mode::create);
  if (!file) return file.error();
  if (Status written = file->write(parts); !written) return written;
  file->close();
  return rename_path(fresh, path);
}

SharedBytes text_bytes(std::string_view text) { return SharedBytes::copy_of(std::as_bytes(std::span(text))); }

}  // namespace

Status write_released(const fs::path& run_dir, std::uint64_t version) {
  const std::array<SharedBytes, 1> parts{text_bytes(std::to_string(version) + "\n")};
  return replace_unsynced(run_dir / kReleasedFile, parts);
}

std::uint64_t read_released(const fs::path& run_dir) {
  const Result<std::string> text = read_whole_file(run_dir / kReleasedFile, 64);
  if (!text || text->empty() || text->back() != '\n') return 0;
  return number_in(text->substr(0, text->size() - 1)).value_or(0);
}

Status write_state(const fs::path& run_dir, std::uint64_t version, const LossState& state) {
  std::array<std::byte, kHeaderBytes> header{};
  std::memcpy(header.data(), kStateMagic.data(), kStateMagic.size());
  store_le(header.data() + 8, state.number);
  store_le(header.data() + 16, static_cast<std::uint64_t>(state.bytes.size()));
  store_le(header.data() + 24, crc32c(state.bytes.bytes()));
  const std::array<SharedBytes, 2> parts{SharedBytes::copy_of(header), state.bytes};
  return replace_unsynced(state_path(run_dir, version), parts);
}

Result<LossState> read_state(const fs::path& run_dir, std::uint64_t version) {
  const std::vector<std::uint64_t> versions = state_versions(run_dir);
  const auto after = std::ranges::upper_bound(versions, version);
  if (after == versions.begin()) return LossState{};
  const fs::path path = state_path(run_dir, *(after - 1));
  const Result<std::string> text = read_whole_file(path, kHeaderBytes + wire::kLossStateBytesMax);
  if (!text) return text.error();
  const auto bytes = std::as_bytes(std::span(*text));
  const Error damaged{ErrorCode::input, path.string() + ": expected what the script's loss had, found damaged bytes",
                      "restore the file, or start the run anew"};
  if (bytes.size() < kHeaderBytes || !text->starts_with(kStateMagic)) return damaged;
  const auto body = bytes.subspan(kHeaderBytes);
  if (load_le<std::uint64_t>(bytes.data() + 16) != body.size() ||
      load_le<std::uint32_t>(bytes.data() + 24) != crc32c(body))
    return damaged;
  return LossState{load_le<std::uint64_t>(bytes.data() + 8), SharedBytes::copy_of(body)};
}

void prune_states(const fs::path& run_dir, std::uint64_t version) {
  const std::vector<std::uint64_t> versions = state_versions(run_dir);
  const auto after = std::ranges::upper_bound(versions, version);
  std::error_code failure;
  for (auto old = versions.begin(); after != versions.begin() && old != after - 1; ++old)
    fs::remove(state_path(run_dir, *old), failure);
}

void roll_back_releases(const fs::path& run_dir, std::uint64_t version) {
  std::error_code failure;
  for (const std::uint64_t held : state_versions(run_dir))
    if (held > version) fs::remove(state_path(run_dir, held), failure);
  if (read_released(run_dir) > version) (void)write_released(run_dir, version);
}

}  // namespace motley::store
