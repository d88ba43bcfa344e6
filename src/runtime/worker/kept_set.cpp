#include "runtime/worker/kept_set.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
using store::File;

// As in python/motley/_content/_kept.py.
constexpr std::uint64_t kKeptBytesMax = 20'000'000'000;          // beside what is in use
constexpr std::uint64_t kSpareBytes = std::uint64_t{256} << 20;  // of the disk

std::uint64_t size_of(const fs::path& path) {
  std::error_code failed;
  const bool regular = fs::symlink_status(path, failed).type() == fs::file_type::regular;
  const std::uint64_t size = regular ? fs::file_size(path, failed) : 0;
  return failed ? 0 : size;
}

bool is_held(const fs::path& path) {
  Result<File> file = File::open(path, File::Mode::append);
  if (!file) return true;
  const Result<bool> ours = file->try_lock();
  return !ours || !*ours;
}

bool in_use(const fs::path& set) {
  std::error_code ignored;
  for (const fs::directory_entry& use : fs::directory_iterator(set / "uses", ignored))
    if (is_held(use.path())) return true;
  return is_held(set / "fetching");
}

struct Unused {
  fs::file_time_type used{};
  std::uint64_t bytes = 0;
  fs::path path;
};

std::vector<Unused> unused_sets(const fs::path& home) {
  std::vector<Unused> found;
  std::error_code ignored;
  for (const fs::directory_entry& set : fs::directory_iterator(home / "sets", ignored)) {
    if (!set.is_directory(ignored) || in_use(set.path())) continue;
    Unused one{.used = fs::last_write_time(set.path() / "used", ignored), .bytes = 0, .path = set.path()};
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(set.path(), ignored))
      one.bytes += store::allocated_bytes(file.path());
    found.push_back(std::move(one));
  }
  std::ranges::sort(found, {}, &Unused::used);
  return found;
}

std::uint64_t free_bytes(const fs::path& home) {
  std::error_code failed;
  const fs::space_info space = fs::space(home, failed);
  return failed ? 0 : space.available;
}

std::string in_gigabytes(std::uint64_t bytes) {
  const std::uint64_t tenths = (bytes + 50'000'000) / 100'000'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

Status make_room(const fs::path& home, std::uint64_t wanted) {
  std::vector<Unused> unused = unused_sets(home);
  std::uint64_t kept = 0;
  for (const Unused& each : unused) kept += each.bytes;
  for (const Unused& each : unused) {
    if (kept + wanted <= kKeptBytesMax && free_bytes(home) >= wanted + kSpareBytes) break;
    std::error_code ignored;
    fs::remove_all(each.path, ignored);
    kept -= each.bytes;
  }
  const std::uint64_t free = free_bytes(home);
  if (wanted == 0 || free >= wanted + kSpareBytes) return {};
  return Error{ErrorCode::disk_full,
               "the head's data need " + in_gigabytes(wanted) + " more in " + home.string() + ", and the disk has " +
                   in_gigabytes(free - std::min(free, kSpareBytes)) + " to give",
               "make room on the disk of this machine, or offer a copy of your own: --data-dir DIR"};
}

}  // namespace

Result<KeptSet> KeptSet::open(const fs::path& home, blocks::Manifest manifest, std::string_view text) {
  KeptSet set;
  set.manifest_ = std::move(manifest);
  set.firsts_.push_back(0);
  for (const blocks::Listed& file : set.manifest_.files) set.firsts_.push_back(set.firsts_.back() + file.count());
  const transport::Digest hash = transport::sha256(std::as_bytes(std::span(text)));
  set.home_ = home / "sets" / to_hex(hash);
  if (Status made = store::make_directories(set.home_ / "uses"); !made) return made.error();
  if (Status made = store::make_directories(set.path()); !made) return made.error();
  std::array<std::uint8_t, 8> name{};
  transport::random_bytes(name);
  Result<File> use = File::open(set.home_ / "uses" / to_hex(name), File::Mode::append);
  if (!use) return use.error();
  set.use_ = std::move(*use);
  if (Result<bool> held = set.use_.try_lock(); !held) return held.error();
  if (Result<File> used = File::open(set.home_ / "used", File::Mode::create); !used) return used.error();
  if (Status kept = store::replace_file(set.home_ / "manifest", text); !kept) return kept.error();
  return set;
}

bool KeptSet::is_whole() const {
  std::error_code ignored;
  return fs::exists(home_ / "whole", ignored) && std::ranges::all_of(manifest_.files, [&](const blocks::Listed& file) {
           return fs::is_regular_file(place(file), ignored) && size_of(place(file)) == file.size;
         });
}

Result<bool> KeptSet::take() {
  if (!fetching_.is_open()) {
    Result<File> file = File::open(home_ / "fetching", File::Mode::append);
    if (!file) return file.error();
    fetching_ = std::move(*file);
  }
  return fetching_.try_lock();
}

Result<std::vector<bool>> KeptSet::begin(const fs::path& home, const std::atomic<bool>& stops) {
  std::error_code ignored;
  fs::remove(home_ / "whole", ignored);
  std::vector<bool> here(firsts_.back());
  std::uint64_t missing = 0;
  for (std::size_t file = 0; file < manifest_.files.size(); ++file) {
    if (Status looked = look_at(file, here, stops); !looked) return looked.error();
    for (std::size_t block = 0; block < manifest_.files[file].count(); ++block)
      if (!here[firsts_[file] + block]) missing += manifest_.files[file].bytes(block);
  }
  if (Status room = make_room(home, missing); !room) return room.error();
  for (const blocks::Listed& file : manifest_.files) {
    Result<File> out = File::open(place(file), File::Mode::update);
    if (!out) return out.error();
    if (Status sized = out->truncate(file.size); !sized) return sized.error();
  }
  return here;
}

Status KeptSet::look_at(std::size_t number, std::vector<bool>& here, const std::atomic<bool>& stops) {
  const blocks::Listed& file = manifest_.files[number];
  const fs::path path = place(file);
  if (Status made = store::make_directories(path.parent_path()); !made) return made;
  std::error_code ignored;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, ignored);
  Result<File> out = File::open(path, File::Mode::update);
  if (!out) return out.error();
  const Result<std::uint64_t> size = out->size();
  if (!size) return size.error();
  std::vector<std::byte> content;
  for (std::size_t block = 0; block < file.count(); ++block) {
    if (stops) return Error{ErrorCode::interrupted, "interrupted", ""};
    const std::uint64_t offset = block * wire::kBlockBytesMax;
    content.resize(file.bytes(block));
    if (*size < offset + content.size() || !out->read_at(offset, content)) break;
    here[firsts_[number] + block] = transport::sha256(content) == file.hash(block);
  }
  return {};
}

std::size_t KeptSet::file_of(std::size_t block) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(firsts_, block) - firsts_.begin()) - 1;
}

Status KeptSet::put(std::size_t block, std::span<const std::byte> content) {
  const std::size_t file = file_of(block);
  if (content.size() != manifest_.files[file].bytes(block - firsts_[file])) {
    return Error{ErrorCode::protocol, "the head's list has one hash for blocks of two sizes",
                 "install the same version of motley on both machines"};
  }
  const fs::path path = place(manifest_.files[file]);
  if (!out_.is_open() || out_.path() != path) {
    Result<File> out = File::open(path, File::Mode::update);
    if (!out) return out.error();
    out_ = std::move(*out);
  }
  if (Status there = out_.seek((block - firsts_[file]) * wire::kBlockBytesMax); !there) return there;
  return out_.write(content);
}

Status KeptSet::finish() {
  out_.close();
  std::error_code ignored;
  for (const blocks::Listed& file : manifest_.files) {
    Result<File> out = File::open(place(file), File::Mode::update);
    if (!out) return out.error();
    if (Status synced = out->sync(); !synced) return synced;
    fs::permissions(place(file), fs::perms::owner_read, ignored);
  }
  if (Result<File> whole = File::open(home_ / "whole", File::Mode::create); !whole) return whole.error();
  fetching_.close();
  return {};
}

}  // namespace motley::runtime
