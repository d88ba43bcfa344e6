#include "store/redo.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "base/crc32c.h"
#include "base/little_endian.h"
#include "store/file.h"

namespace motley::store {
namespace {

// docs/formats/redo.md
constexpr std::string_view kMagic = "MTLYRED2";
constexpr std::size_t kPageBytes = File::kDirectBytes;
constexpr std::size_t kFileHeadBytes = 8 + 8 + 4;            // magic, version, crc32c
constexpr std::size_t kRecordHeadBytes = 8 + 8 + 4 + 4 + 4;  // version, body bytes, chunks, body crc32c, head crc32c
constexpr std::uint32_t kChunksMax = 1 << 24;
constexpr std::string_view kNamePrefix = "from-";

std::filesystem::path log_path(const std::filesystem::path& run_dir, std::uint64_t version) {
  std::string digits = std::to_string(version);
  if (digits.size() < 9) digits.insert(0, 9 - digits.size(), '0');
  return run_dir / "redo" / (std::string(kNamePrefix) + digits);
}

struct Log {
  std::uint64_t base = 0;
  std::filesystem::path path;
};

// By base. Names that are none of ours are left alone.
std::vector<Log> logs_of(const std::filesystem::path& run_dir) {
  std::vector<Log> logs;
  std::error_code failure;
  for (auto entry = std::filesystem::directory_iterator(run_dir / "redo", failure);
       !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kNamePrefix)) continue;
    Log log{0, entry->path()};
    const char* const begin = name.data() + kNamePrefix.size();
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(begin, end, log.base);
    if (parsed.ec == std::errc() && parsed.ptr == end && begin != end) logs.push_back(log);
  }
  std::sort(logs.begin(), logs.end(), [](const Log& a, const Log& b) { return a.base < b.base; });
  return logs;
}

Status remove_file(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::remove(path, failure);
  if (failure) return system_error("delete", path, failure.value());
  return {};
}

/// How a record lies in the file: a large one by pages, each part from the beginning of one and zeros behind it, so
/// that it may be written past the page cache; a small one without a gap.
class Paging {
 public:
  explicit Paging(std::uint64_t chunk_bytes) : page_(chunk_bytes >= File::kDirectWorthBytes ? kPageBytes : 1) {}
  [[nodiscard]] bool direct() const { return page_ > 1; }
  [[nodiscard]] std::size_t in_pages(std::size_t bytes) const { return (bytes + page_ - 1) / page_ * page_; }
  [[nodiscard]] std::size_t whole(std::size_t bytes) const { return bytes / page_ * page_; }
  /// The head of a record and the sizes of its chunks.
  [[nodiscard]] std::size_t front_bytes(std::size_t chunks) const { return in_pages(kRecordHeadBytes + 4 * chunks); }
  [[nodiscard]] bool begins(const std::byte* at) const { return reinterpret_cast<std::uintptr_t>(at) % page_ == 0; }

 private:
  std::size_t page_;
};

struct RecordHead {
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;  // of the body: sizes of the chunks (u32 each), then the chunks, and the zeros behind each
  std::uint32_t chunks = 0;
  std::uint32_t body_crc = 0;
};

std::array<std::byte, kRecordHeadBytes> encode(const RecordHead& head) {
  std::array<std::byte, kRecordHeadBytes> out{};
  store_le<std::uint64_t>(out.data(), head.version);
  store_le<std::uint64_t>(out.data() + 8, head.bytes);
  store_le<std::uint32_t>(out.data() + 16, head.chunks);
  store_le<std::uint32_t>(out.data() + 20, head.body_crc);
  store_le<std::uint32_t>(out.data() + 24, crc32c(std::span(out).first(24)));
  return out;
}

std::optional<RecordHead> decode(std::span<const std::byte, kRecordHeadBytes> in) {
  if (load_le<std::uint32_t>(in.data() + 24) != crc32c(in.first(24))) return std::nullopt;
  const RecordHead head{load_le<std::uint64_t>(in.data()), load_le<std::uint64_t>(in.data() + 8),
                        load_le<std::uint32_t>(in.data() + 16), load_le<std::uint32_t>(in.data() + 20)};
  if (head.chunks > kChunksMax || head.bytes < std::uint64_t{4} * head.chunks) return std::nullopt;
  return head;
}

std::array<std::byte, kPageBytes> encode_file_head(std::uint64_t version) {
  std::array<std::byte, kPageBytes> out{};
  std::copy_n(std::as_bytes(std::span(kMagic)).begin(), kMagic.size(), out.begin());
  store_le<std::uint64_t>(out.data() + 8, version);
  store_le<std::uint32_t>(out.data() + 16, crc32c(std::span(out).first(kFileHeadBytes - 4)));
  return out;
}

std::uint64_t bytes_of(std::span<const SharedBytes> chunks) {
  std::uint64_t bytes = 0;
  for (const SharedBytes& chunk : chunks) bytes += chunk.size();
  return bytes;
}

// A record as it is written: of the gradients what begins on a page from where it is, whole pages of it; all else from
// a copy.
class PagedRecord {
 public:
  PagedRecord(std::uint64_t version, std::span<const SharedBytes> gradients, BufferPool& pool)
      : paging_(bytes_of(gradients)) {
    const std::size_t front_bytes = paging_.front_bytes(gradients.size());
    std::size_t copied = front_bytes;
    for (const SharedBytes& chunk : gradients) copied += paging_.in_pages(chunk.size() - in_place(chunk));
    copy_ = pool.take(paging_.direct() ? std::max(copied, BufferPool::kPagedBytesMin) : copied);
    const std::span<std::byte> front = next_of_copy(front_bytes);
    std::ranges::fill(front, std::byte{0});
    std::byte* size = front.data() + kRecordHeadBytes;
    for (const SharedBytes& chunk : gradients) {
      store_le<std::uint32_t>(size, static_cast<std::uint32_t>(chunk.size()));
      size += 4;
    }
    parts_.emplace_back(nullptr, front);
    for (const SharedBytes& chunk : gradients) add(chunk);
    RecordHead head{.version = version, .chunks = static_cast<std::uint32_t>(gradients.size())};
    head.body_crc = crc32c(front.subspan(kRecordHeadBytes));
    for (const SharedBytes& part : std::span(parts_).subspan(1)) head.body_crc = crc32c(part.bytes(), head.body_crc);
    bytes_ = bytes_of(parts_);
    head.bytes = bytes_ - kRecordHeadBytes;
    std::ranges::copy(encode(head), front.begin());
  }

  [[nodiscard]] std::span<const SharedBytes> parts() const { return parts_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool direct() const { return paging_.direct(); }

 private:
  static constexpr std::size_t kPagedBytesMin = std::size_t{1}
                                                << 16;  // from here on the pool's buffers begin on a page

  [[nodiscard]] std::size_t in_place(const SharedBytes& chunk) const {
    return paging_.begins(chunk.bytes().data()) ? paging_.whole(chunk.size()) : 0;
  }
  std::span<std::byte> next_of_copy(std::size_t count) {
    const std::span<std::byte> next = copy_.bytes().subspan(copied_, count);
    copied_ += count;
    return next;
  }
  void add(const SharedBytes& chunk) {
    const std::size_t whole = in_place(chunk);
    const std::span<const std::byte> rest = chunk.bytes().subspan(whole);
    if (whole > 0) parts_.push_back(chunk.slice(0, whole));
    if (rest.empty()) return;
    const std::span<std::byte> page = next_of_copy(paging_.in_pages(rest.size()));
    std::ranges::fill(std::ranges::copy(rest, page.begin()).out, page.end(), std::byte{0});
    parts_.emplace_back(nullptr, page);
  }

  const Paging paging_;
  MutableBytes copy_;
  std::size_t copied_ = 0;
  std::vector<SharedBytes> parts_;
  std::uint64_t bytes_ = 0;
};

// Reads a log front to back. Whatever is not whole and intact ends it: there is nothing to tell apart here, since the
// steps that are lost are computed again.
class LogReader {
 public:
  LogReader(const Log& log, BufferPool& pool) : pool_(pool) {
    auto opened = File::open(log.path, File::Mode::read);
    if (!opened) return;
    auto size = opened->size();
    std::array<std::byte, kPageBytes> head{};
    if (!size || *size < head.size() || !opened->read_at(0, head)) return;
    if (head != encode_file_head(log.base)) return;
    file_ = std::move(*opened);
    size_ = *size;
    next_ = head.size();
  }

  /// The head of the next record, whose body read_body() gives.
  std::optional<RecordHead> next() {
    std::array<std::byte, kRecordHeadBytes> bytes{};
    if (!file_.is_open() || size_ - next_ < kRecordHeadBytes || !file_.read_at(next_, bytes)) return std::nullopt;
    auto head = decode(bytes);
    if (!head || head->bytes > size_ - next_ - kRecordHeadBytes) return std::nullopt;
    body_ = next_ + kRecordHeadBytes;
    next_ = body_ + head->bytes;
    return head;
  }

  bool read_body(const RecordHead& head, std::vector<SharedBytes>& chunks) {
    chunks.clear();
    std::vector<std::byte> front(std::size_t{4} * head.chunks);
    if (!file_.read_at(body_, front)) return false;
    std::uint64_t chunk_bytes = 0;
    for (std::size_t i = 0; i < head.chunks; ++i) chunk_bytes += load_le<std::uint32_t>(front.data() + 4 * i);
    const Paging paging(chunk_bytes);
    front.resize(paging.front_bytes(head.chunks) - kRecordHeadBytes);
    if (front.size() > head.bytes || !file_.read_at(body_, front)) return false;
    std::uint32_t crc = crc32c(front);
    std::uint64_t left = head.bytes - front.size();
    std::uint64_t at = body_ + front.size();
    for (std::size_t i = 0; i < head.chunks; ++i) {
      const std::uint32_t size = load_le<std::uint32_t>(front.data() + 4 * i);
      const std::size_t in_file = paging.in_pages(size);
      if (in_file > left) return false;
      MutableBytes chunk = pool_.take(in_file);
      if (!file_.read_at(at, chunk.bytes())) return false;
      crc = crc32c(chunk.bytes(), crc);
      at += in_file;
      left -= in_file;
      chunks.push_back(std::move(chunk).seal().slice(0, size));
    }
    return left == 0 && crc == head.body_crc;
  }

 private:
  BufferPool& pool_;
  File file_;
  std::uint64_t size_ = 0, next_ = 0, body_ = 0;
};

}  // namespace

struct RedoWriter::Impl {
  File file;
  std::uint64_t written = 0;
  bool ragged = false;  // the file may go on behind `written`
  BufferPool pool;

  // What a failed write leaves would hide the records of later steps.
  Status cut_off() {
    if (!ragged) return {};
    if (Status done = file.truncate(written); !done) return done;
    ragged = false;
    return {};
  }
};

Result<RedoWriter> RedoWriter::create(const std::filesystem::path& run_dir, std::uint64_t version) {
  if (Status done = make_directories(run_dir / "redo"); !done) return std::move(done).error();
  // Logs of later steps belong to a history that is given up by going on from `version`. The latest goes first, so
  // that a crash in between leaves no gap.
  const auto logs = logs_of(run_dir);
  for (auto log = logs.rbegin(); log != logs.rend() && log->base > version; ++log) {
    if (Status done = remove_file(log->path); !done) return std::move(done).error();
  }
  auto impl = std::make_unique<Impl>();
  auto file = File::open(log_path(run_dir, version), File::Mode::create);
  if (!file) return std::move(file).error();
  impl->file = std::move(*file);
  if (Status done = impl->file.write(encode_file_head(version)); !done) return std::move(done).error();
  impl->written = kPageBytes;
  if (Status done = impl->file.sync(); !done) return std::move(done).error();
  if (Status done = sync_directory(run_dir / "redo"); !done) return std::move(done).error();
  return RedoWriter(std::move(impl));
}

Status RedoWriter::append(std::uint64_t version, std::span<const SharedBytes> gradients) {
  const PagedRecord record(version, gradients, impl_->pool);
  if (record.direct() && impl_->written % kPageBytes == 0) {
    impl_->file.write_past_cache();
  } else {
    impl_->file.write_by_cache();
  }
  if (Status cut = impl_->cut_off(); !cut) return cut;
  if (Status done = impl_->file.write(record.parts()); !done) {
    impl_->ragged = true;
    static_cast<void>(impl_->cut_off());  // tried again before the next write
    return done;
  }
  impl_->written += record.bytes();
  return {};
}

Status RedoWriter::sync() {
  Status done = impl_->file.sync();
  if (done) impl_->file.forget();
  return done;
}

RedoWriter::RedoWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RedoWriter::RedoWriter(RedoWriter&&) noexcept = default;
RedoWriter& RedoWriter::operator=(RedoWriter&&) noexcept = default;
RedoWriter::~RedoWriter() = default;

Result<std::uint64_t> replay_redo(const std::filesystem::path& run_dir, std::uint64_t version,
                                  const std::function<Status(std::uint64_t, std::span<const SharedBytes>)>& apply) {
  BufferPool pool;
  std::vector<SharedBytes> chunks;
  const auto logs = logs_of(run_dir);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    // A later log starts where an earlier one was given up, even if that one goes on.
    const std::uint64_t end = i + 1 < logs.size() ? logs[i + 1].base : ~std::uint64_t{0};
    if (logs[i].base > version) break;
    if (end <= version) continue;
    LogReader reader(logs[i], pool);
    while (version < end) {
      const auto head = reader.next();
      if (!head || head->version > version) break;
      if (head->version < version) continue;
      if (!reader.read_body(*head, chunks)) break;
      if (Status done = apply(version, chunks); !done) return std::move(done).error();
      chunks.clear();
      ++version;
    }
  }
  return version;
}

Status prune_redo(const std::filesystem::path& run_dir, std::uint64_t version) {
  const auto logs = logs_of(run_dir);
  // The newest log may still be written to, so it stays whatever it holds.
  for (std::size_t i = 0; i + 1 < logs.size() && logs[i + 1].base <= version; ++i) {
    if (Status done = remove_file(logs[i].path); !done) return done;
  }
  return {};
}

}  // namespace motley::store
