#pragma once
// Data sets known by name: where their IDX files may lie, where they can be fetched. Functions without state.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace motley::data {

struct NamedDataset {
  std::string name;
  std::vector<std::string> directories;  // where packages of operating systems put it
  std::vector<std::string> base_urls;    // tried in order; end with '/'
  RemoteFile train_images, train_labels, test_images, test_labels;
};

struct ImagesAndLabels {
  std::string images, labels;  // paths
};

[[nodiscard]] std::vector<NamedDataset> named_datasets();

/// The files of a part under their usual names in `directory` (with - or . before idx, plain or .gz). Error: input.
Result<ImagesAndLabels> find_idx_pair(const std::string& directory, const std::string& part);

/// Looks into the directories of `dataset` and into cache_dir/name, then downloads what is missing to the latter.
Result<ImagesAndLabels> find_or_fetch(const NamedDataset& dataset, const std::string& part, const OpenOptions& options);

}  // namespace motley::data
