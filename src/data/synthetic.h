#pragma once
// "synthetic:SIZE:FEATURES:CLASSES": blobs around one random centre a class, equal on every machine. Pure.

#include <string>

#include "data/array_dataset.h"

namespace motley::data {

/// `part`: "train" and "test" have the same centres and other samples.
Result<Parts> make_synthetic(const std::string& uri, const std::string& part);

}  // namespace motley::data
