#pragma once
// Golden files of tests/unit/wire/data, and the messages they hold.

#include <cstddef>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "wire/messages.h"

namespace motley::wire::golden {

inline std::vector<std::byte> read(const std::string& name) {
  std::ifstream file(std::string(MOTLEY_TEST_DATA "/") + name, std::ios::binary);
  if (!file) throw std::runtime_error("no golden file " + name);
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> it(file), end; it != end; ++it) bytes.push_back(static_cast<std::byte>(*it));
  return bytes;
}

struct Named {
  std::string file;
  Message message;
};

/// One message of each kind: the same values as in the .txtpb files, whose bytes google.protobuf made.
std::vector<Named> messages();

}  // namespace motley::wire::golden
