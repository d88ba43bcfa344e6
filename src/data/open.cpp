#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/nearest.h"
#include "data/dataset.h"
#include "data/format/assemble.h"
#include "data/format/packed.h"
#include "data/format/text.h"
#include "data/named.h"
#include "data/source/source.h"
#include "data/synthetic.h"
#include "data/uri.h"

namespace motley::data {
namespace {

constexpr std::string_view kForms =
    "fashion-mnist, mnist, synthetic:SIZE:FEATURES:CLASSES, text:FILE, a directory of IDX files, IMAGES+LABELS (IDX or "
    ".npy), or a packed file";

Result<NamedArray> load_array(const std::string& uri) {
  const Result<std::shared_ptr<const Source>> source = open_source(uri);
  if (!source) return source.error();
  return read_array(**source);
}

Result<Parts> load_pair(const ImagesAndLabels& uris) {
  const Result<NamedArray> samples = load_array(uris.images);
  if (!samples) return samples.error();
  const Result<NamedArray> targets = load_array(uris.labels);
  if (!targets) return targets.error();
  return assemble(*samples, *targets);
}

Result<Parts> load_packed(const std::string& uri) {
  const Result<std::shared_ptr<const Source>> source = open_source(uri);
  if (!source) return source.error();
  return read_packed(**source);
}

Error unknown(const std::string& uri) {
  const std::array<std::string_view, 4> names{"fashion-mnist", "mnist", "synthetic", "text"};
  const std::string meant = nearest(std::string_view(uri).substr(0, uri.find(':')), names);
  return {ErrorCode::input, "expected " + std::string(kForms) + "; found '" + uri + "', which is none of them",
          meant.empty() ? "check the spelling and the working directory" : "did you mean '" + meant + "'?"};
}

Result<Parts> load(const std::string& uri, const std::string& part, const OpenOptions& options) {
  if (uri.starts_with("synthetic:")) return make_synthetic(uri, part);
  for (const NamedDataset& dataset : named_datasets()) {
    if (uri != dataset.name) continue;
    const Result<ImagesAndLabels> paths = find_or_fetch(dataset, part, options);
    if (!paths) return paths.error();
    return load_pair(*paths);
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(uri, ignored)) {
    const Result<ImagesAndLabels> paths = find_idx_pair(uri, part);
    if (!paths) return paths.error();
    return load_pair(*paths);
  }
  if (std::filesystem::exists(uri, ignored)) return load_packed(uri);
  if (const std::size_t plus = uri.find('+'); plus != std::string::npos) {
    return load_pair({uri.substr(0, plus), uri.substr(plus + 1)});
  }
  if (uri.ends_with(".motley") || uri.find('/') != std::string::npos) return load_packed(uri);
  return unknown(uri);
}

}  // namespace

Result<std::shared_ptr<const Dataset>> open_dataset(const std::string& uri, const std::string& part,
                                                    const OpenOptions& options) {
  const Normalisation& by = options.normalisation;
  if (!std::isfinite(by.mean) || !std::isfinite(by.std) || by.std <= 0) {
    return Error{ErrorCode::usage,
                 "expected a normalisation with a finite mean and a standard deviation above zero, found mean " +
                     std::to_string(by.mean) + " and standard deviation " + std::to_string(by.std),
                 "leave them at 0 and 1 if in doubt"};
  }
  if (part != "train" && part != "test") {
    return Error{ErrorCode::usage, "expected the part train or test, found '" + part + "'", "use train or test"};
  }
  if (names_text(uri)) {
    const Result<std::shared_ptr<const Source>> source = open_source(text_path(uri));
    if (!source) return source.error();
    return read_text(**source, part, options);
  }
  Result<Parts> parts = load(uri, part, options);
  if (!parts) return std::move(parts).error();
  return make_dataset(std::move(*parts), options.normalisation);
}

}  // namespace motley::data
