#include "data/source/download.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "data/source/file.h"
#include "data/source/partial_file.h"

namespace motley::data {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 31;  // far above any file that is fetched here

Error disk_error(const std::string& path, int number) {
  const bool full = PartialFile::is_full(number);
  return {full ? ErrorCode::disk_full : ErrorCode::io,
          path + ": cannot be written: " + std::generic_category().message(number),
          full ? "free some space" : "check the directory for downloads"};
}

Status fetch_one(const Retrieve& retrieve, const std::string& url, const RemoteFile& file, const std::string& path,
                 const Sha256Hex& sha256_hex, const DownloadProgress& progress) {
  const std::string hint = "check the connection, or put " + file.name + " into " +
                           std::filesystem::path(path).parent_path().string() + " yourself";
  PartialFile out(path);
  if (out.error() != 0) return disk_error(path, out.error());
  std::uint64_t done = 0;
  const Status retrieved = retrieve(url, [&](std::span<const std::byte> bytes, std::uint64_t total) {
    if (bytes.size() > kFileBytesMax - done || !out.write(bytes)) return false;
    done += bytes.size();
    if (progress) progress(file.name, done, total);
    return true;
  });
  if (out.error() != 0) return disk_error(path, out.error());
  if (!retrieved) {
    return Error{ErrorCode::network, url + ": download failed: " + retrieved.error().message, hint};
  }
  const Result<std::shared_ptr<const Source>> whole = open_file(out.path());
  if (!whole) return whole.error();
  const Result<SharedBytes> bytes = (*whole)->view();
  if (!bytes) return bytes.error();
  const std::string sha256 = sha256_hex(bytes->bytes());
  if (sha256 != file.sha256) {
    return Error{ErrorCode::network,
                 url + ": expected SHA-256 " + file.sha256 + ", found " + sha256 + " (" + std::to_string(done) +
                     " bytes); the download was deleted",
                 hint};
  }
  if (!out.keep_as(path)) return disk_error(path, out.error());
  return {};
}

}  // namespace

Status fetch(const Retrieve& retrieve, const std::vector<std::string>& base_urls, const RemoteFile& file,
             const std::string& directory, const Sha256Hex& sha256_hex, const DownloadProgress& progress) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return disk_error(directory, failed.value());
  Status status = Error{ErrorCode::internal, file.name + ": no address to download it from", ""};
  for (const std::string& base_url : base_urls) {
    status = fetch_one(retrieve, base_url + file.name, file, directory + "/" + file.name, sha256_hex, progress);
    if (status || status.error().code != ErrorCode::network) return status;
  }
  return status;
}

}  // namespace motley::data
