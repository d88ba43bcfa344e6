#include "store/run_dir.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "store/checkpoint_files.h"
#include "store/file.h"

namespace motley::store {
namespace {

constexpr const char* kLockName = "lock";
constexpr const char* kRunName = "run.toml";
constexpr const char* kIncarnationName = "incarnation";

// The lock file's text is only for the message; the lock itself ends with its process.
std::string holder_of(const std::filesystem::path& lock) {
  const auto text = read_whole_file(lock, 64);
  std::uint64_t pid = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), pid).ec != std::errc())
    return "another process";
  return "process " + std::to_string(pid);
}

Status take_lock(File& lock, const std::filesystem::path& path) {
  const Result<bool> taken = lock.try_lock();
  if (!taken) return taken.error();
  if (*taken) return {};
  const std::string holder = holder_of(path / kLockName);
  return Error{ErrorCode::busy,
               path.string() + " is in use by " + holder + "; a run directory serves one process at a time",
               "wait for " + holder + " to end or stop it, or choose another directory with --run DIR"};
}

bool plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

struct RunDir::Impl {
  std::filesystem::path path;
  File lock;  // held as long as this is open
};

Result<RunDir> RunDir::open(const std::filesystem::path& path, bool must_exist) {
  std::error_code failure;
  if (must_exist && !std::filesystem::is_regular_file(path / kRunName, failure)) {
    return Error{ErrorCode::input,
                 path.string() + " holds no run: " + (path / kRunName).string() + " was expected and not found",
                 "give the directory of a run that was started before, or leave --resume away"};
  }
  if (Status done = make_directories(path); !done) return std::move(done).error();
  auto lock = File::open(path / kLockName, File::Mode::append);
  if (!lock) return std::move(lock).error();
  if (Status done = take_lock(*lock, path); !done) return std::move(done).error();
  if (Status done = lock->truncate(0); !done) return std::move(done).error();
  const std::string pid = std::to_string(this_process()) + "\n";
  if (Status done = lock->write(std::as_bytes(std::span(pid))); !done) return std::move(done).error();
  // Only the holder of the lock may clear what a crash left; to others it may be a write in progress.
  remove_leftovers(path, "", ".tmp-");
  clean_checkpoints(checkpoints_of(path));

  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->lock = std::move(*lock);
  return RunDir(std::move(impl));
}

const std::filesystem::path& RunDir::path() const noexcept { return impl_->path; }

bool RunDir::has_run() const {
  std::error_code failure;
  return std::filesystem::is_regular_file(impl_->path / kRunName, failure);
}

Status RunDir::write_file(const std::string& name, std::string_view content, bool secret) {
  MOTLEY_ASSERT(plain_name(name));
  return replace_file(impl_->path / name, content, secret);
}

Result<std::string> RunDir::read_file(const std::string& name, std::size_t bytes_max) const {
  MOTLEY_ASSERT(plain_name(name));
  return read_whole_file(impl_->path / name, bytes_max);
}

Result<std::uint32_t> RunDir::next_incarnation() {
  const auto file = impl_->path / kIncarnationName;
  std::uint32_t last = 0;
  std::error_code failure;
  if (std::filesystem::exists(file, failure)) {
    const auto text = read_whole_file(file, 64);
    if (!text) return text.error();
    const char* const end = text->data() + text->size();
    const auto parsed = std::from_chars(text->data(), end, last);
    const bool whole = parsed.ec == std::errc() && std::string_view(parsed.ptr, end) == "\n";
    if (!whole || last == std::numeric_limits<std::uint32_t>::max()) {
      return Error{ErrorCode::input,
                   file.string() + ": a number below 2^32 - 1 was expected, found " + in_quotes(*text),
                   "restore the file; it must be higher than in any start of this run before"};
    }
  }
  if (Status done = write_file(kIncarnationName, std::to_string(last + 1) + "\n"); !done)
    return std::move(done).error();
  return last + 1;
}

RunDir::RunDir(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunDir::RunDir(RunDir&&) noexcept = default;
RunDir& RunDir::operator=(RunDir&&) noexcept = default;
RunDir::~RunDir() = default;

}  // namespace motley::store
