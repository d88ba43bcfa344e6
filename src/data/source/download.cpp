#include "data/source/download.h"

#include <curl/curl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "data/source/file.h"

namespace motley::data {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kStallSeconds = 30;  // less than kStallBytes a second for so long: given up
constexpr long kStallBytes = 1024;
constexpr long kRedirectsMax = 5;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 31;  // far above any file that is fetched here

/// A file beside its final place; deleted unless kept.
class PartialFile {
 public:
  explicit PartialFile(const std::string& final_path) : path_(final_path + ".part-XXXXXX") {
    fd_ = ::mkstemp(path_.data());
    error_ = fd_ < 0 ? errno : 0;
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (fd_ >= 0) ::close(fd_);
    if (fd_ >= 0 && !kept_) ::unlink(path_.c_str());
  }
  [[nodiscard]] int error() const noexcept { return error_; }  // errno of the first failure
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  bool write(std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        error_ = errno;
        return false;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return true;
  }
  bool keep_as(const std::string& final_path) noexcept {
    kept_ = ::fchmod(fd_, 0644) == 0 && ::fsync(fd_) == 0 && ::rename(path_.c_str(), final_path.c_str()) == 0;
    if (!kept_) error_ = errno;
    return kept_;
  }

 private:
  std::string path_;
  int fd_ = -1;
  int error_ = 0;
  bool kept_ = false;
};

struct Transfer {
  PartialFile& out;
  const std::string& name;
  const DownloadProgress& progress;
  std::uint64_t bytes = 0;
};

std::size_t on_data(char* data, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, count));
  if (transfer.bytes + count > kFileBytesMax || !transfer.out.write(bytes)) return 0;
  transfer.bytes += count;
  return count;
}

int on_progress(void* user, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.progress) {
    transfer.progress(transfer.name, static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  }
  return 0;
}

Error disk_error(const std::string& path, int number) {
  const bool full = number == ENOSPC || number == EDQUOT;
  return {full ? ErrorCode::disk_full : ErrorCode::io,
          path + ": cannot be written: " + std::generic_category().message(number),
          full ? "free some space" : "check the directory for downloads"};
}

Status fetch_one(const std::string& url, const RemoteFile& file, const std::string& path, const Sha256Hex& sha256_hex,
                 const DownloadProgress& progress) {
  const std::string hint = "check the connection, or put " + file.name + " into " +
                           std::filesystem::path(path).parent_path().string() + " yourself";
  PartialFile out(path);
  if (out.error() != 0) return disk_error(path, out.error());
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(), curl_easy_cleanup);
  if (!handle) return Error{ErrorCode::internal, "libcurl cannot be started", ""};
  Transfer transfer{.out = out, .name = file.name, .progress = progress};
  std::array<char, CURL_ERROR_SIZE> details{};
  CURL* curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirectsMax);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, redirects_allowed(url));
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // threads are about
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytes);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  if (out.error() != 0) return disk_error(path, out.error());
  if (code != CURLE_OK) {
    const std::string why = details[0] != '\0' ? details.data() : curl_easy_strerror(code);
    return Error{ErrorCode::network, url + ": download failed: " + why, hint};
  }
  const Result<std::shared_ptr<const Source>> whole = open_file(out.path());
  if (!whole) return whole.error();
  const Result<SharedBytes> bytes = (*whole)->view();
  if (!bytes) return bytes.error();
  const std::string sha256 = sha256_hex(bytes->bytes());
  if (sha256 != file.sha256) {
    return Error{ErrorCode::network,
                 url + ": expected SHA-256 " + file.sha256 + ", found " + sha256 + " (" +
                     std::to_string(transfer.bytes) + " bytes); the download was deleted",
                 hint};
  }
  if (!out.keep_as(path)) return disk_error(path, out.error());
  return {};
}

}  // namespace

const char* redirects_allowed(const std::string& url) { return url.starts_with("https:") ? "https" : "http,https"; }

Status fetch(const std::vector<std::string>& base_urls, const RemoteFile& file, const std::string& directory,
             const Sha256Hex& sha256_hex, const DownloadProgress& progress) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return disk_error(directory, failed.value());
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) return Error{ErrorCode::internal, "libcurl cannot be started", ""};
  Status status = Error{ErrorCode::internal, file.name + ": no address to download it from", ""};
  for (const std::string& base_url : base_urls) {
    status = fetch_one(base_url + file.name, file, directory + "/" + file.name, sha256_hex, progress);
    if (status || status.error().code != ErrorCode::network) return status;
  }
  return status;
}

}  // namespace motley::data
