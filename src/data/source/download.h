#pragma once
// Fetches published files. Blocking; one caller a file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "motley/result.h"

namespace motley::data {

struct RemoteFile {
  std::string name;    // "train-images-idx3-ubyte.gz"
  std::string sha256;  // of the file as published, in hexadecimal
};

/// SHA-256 of bytes, in hexadecimal. Whoever opens data sets brings it: the cryptography of the project lies elsewhere.
using Sha256Hex = std::function<std::string(std::span<const std::byte>)>;
/// Reports a download: bytes so far, bytes in all (0 when unknown).
using DownloadProgress = std::function<void(const std::string& file, std::uint64_t done, std::uint64_t total)>;

/// Fetches base_url + file.name into directory/file.name (the directory is made), trying the base URLs in order. The
/// file appears under its name only when complete and its SHA-256 right. Errors: network, io, disk_full.
Status fetch(const std::vector<std::string>& base_urls, const RemoteFile& file, const std::string& directory,
             const Sha256Hex& sha256_hex, const DownloadProgress& progress);

/// Protocols to which an answer from `url` may lead, as libcurl wants them: never from https to http.
const char* redirects_allowed(const std::string& url);

}  // namespace motley::data
