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

/// Takes what a download brings, piece by piece, and how much that will be in all (0 when unknown). False: no more.
using TakeBytes = std::function<bool(std::span<const std::byte>, std::uint64_t total)>;
/// Brings what lies at a URL, in order and once, until the end or until it is not taken. Blocking. HTTP and HTTPS
/// belong to libraries that this one does without. Errors: network, with nothing but the reason in the message.
using Retrieve = std::function<Status(const std::string& url, const TakeBytes& take)>;

/// Fetches base_url + file.name into directory/file.name (the directory is made), trying the base URLs in order. The
/// file appears under its name only when complete and its SHA-256 right. Errors: network, io, disk_full.
Status fetch(const Retrieve& retrieve, const std::vector<std::string>& base_urls, const RemoteFile& file,
             const std::string& directory, const Sha256Hex& sha256_hex, const DownloadProgress& progress);

/// Fetches a URL into a file below `directory`, which is named as the last part of its path, in place of one that is
/// there; the file's path. Errors likewise.
Result<std::string> download(const Retrieve& retrieve, const std::string& url, const std::string& directory,
                             const DownloadProgress& progress);

}  // namespace motley::data
