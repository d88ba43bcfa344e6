#pragma once
// Fetches published files. Blocking; one caller a file.

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/named.h"

namespace motley::data {

/// Fetches base_url + file.name into directory/file.name (the directory is made), trying the base URLs in order. The
/// file appears under its name only when complete and its MD5 right. Errors: network, io, disk_full.
Status fetch(const std::vector<std::string>& base_urls, const RemoteFile& file, const std::string& directory,
             const DownloadProgress& progress);

}  // namespace motley::data
