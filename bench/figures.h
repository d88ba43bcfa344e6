#pragma once
// What the programs of this folder make of what they measured, and how they say it.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "motley/result.h"

namespace motley::bench {

using Json = nlohmann::ordered_json;

/// One line on standard output.
inline void say(const Json& object) {
  std::printf("%s\n", object.dump().c_str());
  std::fflush(stdout);
}

/// 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The exit status.
inline int failed(const Error& error) {
  std::fprintf(stderr, "%s; %s\n", error.message.c_str(), error.hint.c_str());
  return 1;
}

}  // namespace motley::bench
