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
  const auto named = [](const std::string& name, std::vector<std::string> urls, std::array<const char*, 4> sha256) {
    return NamedDataset{name,
                        {"/usr/share/datasets/" + name},
                        std::move(urls),
                        {"train-images-idx3-ubyte.gz", sha256[0]},
                        {"train-labels-idx1-ubyte.gz", sha256[1]},
                        {"t10k-images-idx3-ubyte.gz", sha256[2]},
                        {"t10k-labels-idx1-ubyte.gz", sha256[3]}};
  };
  return {named("fashion-mnist",
                {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                 "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
                {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                 "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                 "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                 "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}),
          named("mnist", {"https://ossci-datasets.s3.amazonaws.com/mnist/"},
                {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                 "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                 "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                 "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"})};
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
  if (!options.retrieve) {
    return Error{ErrorCode::input,
                 dataset.name + ": expected its files in " + directory + ", found none, and nothing here downloads",
                 "put its four files there"};
  }
  const bool test = part == "test";
  for (const RemoteFile* file :
       {test ? &dataset.test_images : &dataset.train_images, test ? &dataset.test_labels : &dataset.train_labels}) {
    if (is_file(directory + "/" + file->name)) continue;
    if (Status status =
            fetch(options.retrieve, dataset.base_urls, *file, directory, options.sha256_hex, options.on_download);
        !status) {
      return std::move(status).error();
    }
  }
  return find_idx_pair(directory, part);
}

}  // namespace motley::data
