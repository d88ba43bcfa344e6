#include "data/named.h"

#include <filesystem>

#include "data/source/download.h"

namespace motley::data {
namespace {

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// "train-images-idx3-ubyte" and its spellings; the first that exists.
std::string find_spelling(const std::string& directory, const std::string& stem, const std::string& kind) {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      std::string path = directory;
      path.append("/").append(stem).append(separator).append(kind).append(ending);
      if (is_file(path)) return path;
    }
  }
  return {};
}

std::string prefix_of(const std::string& part) { return part == "test" ? "t10k" : "train"; }

}  // namespace

std::vector<NamedDataset> named_datasets() {
  const auto named = [](const std::string& name, std::vector<std::string> urls, std::array<const char*, 4> md5) {
    return NamedDataset{name,
                        {"/usr/share/datasets/" + name},
                        std::move(urls),
                        {"train-images-idx3-ubyte.gz", md5[0]},
                        {"train-labels-idx1-ubyte.gz", md5[1]},
                        {"t10k-images-idx3-ubyte.gz", md5[2]},
                        {"t10k-labels-idx1-ubyte.gz", md5[3]}};
  };
  return {named("fashion-mnist",
                {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                 "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
                {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
                 "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"}),
          named("mnist", {"https://ossci-datasets.s3.amazonaws.com/mnist/"},
                {"f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
                 "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"})};
}

Result<ImagesAndLabels> find_idx_pair(const std::string& directory, const std::string& part) {
  const std::string prefix = prefix_of(part);
  ImagesAndLabels found{find_spelling(directory, prefix + "-images", "idx3-ubyte"),
                        find_spelling(directory, prefix + "-labels", "idx1-ubyte")};
  if (!found.images.empty() && !found.labels.empty()) return found;
  const std::string missing = prefix + (found.images.empty() ? "-images-idx3-ubyte" : "-labels-idx1-ubyte");
  return Error{ErrorCode::input, directory + ": expected " + missing + " or " + missing + ".gz in it, found neither",
               "name the two files instead: IMAGES+LABELS"};
}

Result<ImagesAndLabels> find_or_fetch(const NamedDataset& dataset, const std::string& part,
                                      const OpenOptions& options) {
  for (const std::string& directory : dataset.directories) {
    if (Result<ImagesAndLabels> found = find_idx_pair(directory, part)) return found;
  }
  if (options.cache_dir.empty()) {
    return Error{ErrorCode::input,
                 dataset.name + ": expected its files in " + dataset.directories.front() +
                     ", found none, and there is no directory to download to",
                 "install the data set, or give a directory for downloads"};
  }
  const std::string directory = options.cache_dir + "/" + dataset.name;
  if (Result<ImagesAndLabels> found = find_idx_pair(directory, part)) return found;
  const bool test = part == "test";
  for (const RemoteFile* file :
       {test ? &dataset.test_images : &dataset.train_images, test ? &dataset.test_labels : &dataset.train_labels}) {
    if (is_file(directory + "/" + file->name)) continue;
    if (Status status = fetch(dataset.base_urls, *file, directory, options.on_download); !status) {
      return std::move(status).error();
    }
  }
  return find_idx_pair(directory, part);
}

}  // namespace motley::data
