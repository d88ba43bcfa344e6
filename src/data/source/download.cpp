#include "data/source/download.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "data/source/file.h"
#include "data/source/partial_file.h"

namespace motley::data {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 31;  // far above any that is known by name
constexpr std::uint64_t kAnyBytesMax = std::uint64_t{1} << 50;

Error disk_error(const std::string& path, int number) {
  const bool full = PartialFile::is_full(number);
  return {full ? ErrorCode::disk_full : ErrorCode::io,
          path + ": cannot be written: " + std::generic_category().message(number),
          full ? "free some space" : "check the directory for downloads"};
}

Status bring(const Retrieve& retrieve, const std::string& url, const std::string& name, std::uint64_t most,
             PartialFile& out, const std::string& path, const std::string& hint, const DownloadProgress& progress) {
  if (out.error() != 0) return disk_error(path, out.error());
  std::uint64_t done = 0;
  const Status retrieved = retrieve(url, [&](std::span<const std::byte> bytes, std::uint64_t total) {
    if (bytes.size() > most - done || !out.write(bytes)) return false;
    done += bytes.size();
    if (progress) progress(name, done, total);
    return true;
  });
  if (out.error() != 0) return disk_error(path, out.error());
  if (!retrieved) return Error{ErrorCode::network, url + ": download failed: " + retrieved.error().message, hint};
  return {};
}

// Of the path in a URL; letters that some system cannot have in names become others.
std::string last_part(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  std::string name = path.substr(path.rfind('/') + 1);
  for (char& letter : name) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                       (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '.' || letter == '_';
    if (!plain) letter = '_';
  }
  constexpr std::size_t kNameMax = 200;
  if (name.size() > kNameMax) name.erase(0, name.size() - kNameMax);
  while (name.starts_with('.') || name.ends_with('.')) name.erase(name.starts_with('.') ? 0 : name.size() - 1, 1);
  return name.empty() ? "data" : name;
}

Status fetch_one(const Retrieve& retrieve, const std::string& url, const RemoteFile& file, const std::string& path,
                 const Sha256Hex& sha256_hex, const DownloadProgress& progress) {
  const std::string hint = "check the connection, or put " + file.name + " into " +
                           std::filesystem::path(path).parent_path().string() + " yourself";
  PartialFile out(path);
  if (Status brought = bring(retrieve, url, file.name, kFileBytesMax, out, path, hint, progress); !brought)
    return brought;
  const Result<std::shared_ptr<const Source>> whole = open_file(out.path());
  if (!whole) return whole.error();
  const Result<SharedBytes> bytes = (*whole)->view();
  if (!bytes) return bytes.error();
  const std::string sha256 = sha256_hex(bytes->bytes());
  if (sha256 != file.sha256) {
    return Error{ErrorCode::network,
                 url + ": expected SHA-256 " + file.sha256 + ", found " + sha256 + " (" +
                     std::to_string(bytes->size()) + " bytes); the download was deleted",
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
  Status status = Error{ErrorCode::input, file.name + ": no address to download it from", ""};
  for (const std::string& base_url : base_urls) {
    status = fetch_one(retrieve, base_url + file.name, file, directory + "/" + file.name, sha256_hex, progress);
    if (status || status.error().code != ErrorCode::network) return status;
  }
  return status;
}

Result<std::string> download(const Retrieve& retrieve, const std::string& url, const std::string& directory,
                             const DownloadProgress& progress) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return disk_error(directory, failed.value());
  const std::string name = last_part(url);
  std::string path = directory + "/" + name;
  PartialFile out(path);
  const std::string hint = "check the address and the connection";
  if (Status brought = bring(retrieve, url, name, kAnyBytesMax, out, path, hint, progress); !brought)
    return brought.error();
  if (!out.keep_as(path)) return disk_error(path, out.error());
  return path;
}

}  // namespace motley::data
