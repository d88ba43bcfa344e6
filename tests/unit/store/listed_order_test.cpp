#include "store/listed_order.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary.h"

namespace motley::store {
namespace {

using test::TemporaryDirectory;

std::vector<std::uint64_t> listed(const std::filesystem::path& directory, std::uint64_t epoch,
                                  std::vector<std::uint64_t> positions, std::string* said = nullptr) {
  const Status status = apply_listed_order(directory, epoch, positions);
  if (said != nullptr) *said = status ? "" : status.error().message;
  return status ? positions : std::vector<std::uint64_t>{};
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(ListedOrder, SamplesComeInThePlaceOfPositions) {
  const TemporaryDirectory directory;
  EXPECT_EQ(listed(directory / "", 0, {2, 0}), (std::vector<std::uint64_t>{2, 0})) << "the run has an order of its own";
  write(directory / "orders/0.txt", "7\n7\n123456789012\n");
  EXPECT_EQ(listed(directory / "", 0, {2, 0, 1}), (std::vector<std::uint64_t>{123456789012, 7, 7}));
  EXPECT_EQ(listed(directory / "", 1, {}), std::vector<std::uint64_t>{}) << "of no step nothing is needed";
}

TEST(ListedOrder, WhatIsMissingOrDamagedIsNamed) {
  const TemporaryDirectory directory;
  write(directory / "orders/0.txt", "7\n8\n");
  std::string said;
  listed(directory / "", 1, {0}, &said);
  EXPECT_NE(said.find("1.txt"), std::string::npos) << said;
  listed(directory / "", 0, {2}, &said);
  EXPECT_NE(said.find("more than 2 samples, found 2"), std::string::npos) << said;
  for (const char* odd : {"7\n8", "7\n\n8\n", "7\nx\n", "-1\n", "7 8\n", "99999999999999999999999\n"}) {
    write(directory / "orders/0.txt", odd);
    listed(directory / "", 0, {0}, &said);
    EXPECT_NE(said.find("expected a sample number in line"), std::string::npos) << odd << ": " << said;
  }
}

}  // namespace
}  // namespace motley::store
