#include "runtime/head/data_offer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "blocks/manifest.h"
#include "data/files.h"
#include "data/uri.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string name;
  fs::path path;
};

Status collect(const std::string& uri, const std::string& part, const std::string& place, std::vector<Named>& into) {
  const Result<data::FilesOf> files = data::files_of(uri, part);
  if (!files) return files.error();
  for (std::size_t i = 0; i < files->paths.size(); ++i) {
    std::error_code failed;
    const fs::path given = files->paths[i];
    fs::path path = fs::canonical(given, failed);  // what a link leads to counts
    if (failed) return Error{ErrorCode::input, given.string() + ": " + failed.message(), "check the path"};
    const std::string below = files->pair ? (i == 0 ? "/images/" : "/labels/") : "/";
    const std::string name = place + below + given.filename().string();
    if (std::ranges::find(into, name, &Named::name) == into.end()) into.push_back({name, std::move(path)});
  }
  return {};
}

Result<blocks::Listed> listed(const Named& file) {
  std::error_code failed;
  blocks::Listed found{.name = file.name, .size = fs::file_size(file.path, failed)};
  if (failed) return Error{ErrorCode::io, file.path.string() + ": " + failed.message(), "check the path"};
  std::ifstream in(file.path, std::ios::binary);
  std::vector<std::byte> block(wire::kBlockBytesMax);
  for (std::uint64_t left = found.size; left > 0;) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size()));
    in.read(reinterpret_cast<char*>(block.data()), static_cast<std::streamsize>(count));
    if (!in) return Error{ErrorCode::io, file.path.string() + ": cannot be read", "leave the file as it is meanwhile"};
    const transport::Digest hash = transport::sha256(std::span<const std::byte>(block).first(count));
    found.hashes.insert(found.hashes.end(), hash.begin(), hash.end());
    left -= count;
  }
  return found;
}

}  // namespace

Result<std::shared_ptr<Offers>> offer_data(const std::string& train, const std::string& test) {
  std::vector<Named> files;
  const bool same = train == test || data::same_text(train, test);
  if (Status found = collect(train, "train", "train", files); !found) return found.error();
  if (!test.empty())
    if (Status found = collect(test, "test", same ? "train" : "test", files); !found) return found.error();
  if (files.empty()) return std::shared_ptr<Offers>();
  blocks::Manifest manifest{.name = kDataSet};
  for (const Named& file : files) {
    Result<blocks::Listed> one = listed(file);
    if (!one) return one.error();
    manifest.files.push_back(std::move(*one));
  }
  if (Status named = blocks::check_names(manifest); !named) return named.error();
  const std::string text = blocks::to_text(manifest);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  blocks::Catalogue::Offer offer{.manifest = SharedBytes::copy_of(bytes), .hash = transport::sha256(bytes)};
  for (std::size_t i = 0; i < files.size(); ++i)
    offer.files.push_back({files[i].path.string(), manifest.files[i].size, std::move(manifest.files[i].hashes)});
  auto offers = std::make_shared<Offers>();
  if (Status added = offers->add(std::move(offer)); !added) return added.error();
  return offers;
}

}  // namespace motley::runtime
