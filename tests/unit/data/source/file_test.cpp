#include "data/source/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../fixtures.h"

namespace motley::data {
namespace {

using test::Bytes;
using test::bytes_of_text;
using test::Directory;
using ::testing::HasSubstr;

Bytes copy(const SharedBytes& bytes) { return {bytes.bytes().begin(), bytes.bytes().end()}; }

TEST(FileSource, ReadsRanges) {
  const Directory directory;
  const std::string path = directory.write("a", bytes_of_text("abcdef"));
  const auto source = open_file(path);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->name(), path);
  EXPECT_EQ((*source)->size(), 6U);
  EXPECT_EQ(copy(*(*source)->read(2, 3)), bytes_of_text("cde"));
  EXPECT_EQ(copy(*(*source)->read(0, 6)), bytes_of_text("abcdef"));
  EXPECT_TRUE((*source)->read(6, 0)->empty());
  EXPECT_EQ(copy(*(*source)->view()), bytes_of_text("abcdef"));
}

TEST(FileSource, WhatWasReadOutlivesTheSourceAndItsFile) {
  const Directory directory;
  const std::string path = directory.write("a", bytes_of_text("abcdef"));
  const SharedBytes bytes = *(*open_file(path))->read(1, 2);
  const SharedBytes all = *(*open_file(path))->view();
  std::filesystem::remove(path);
  EXPECT_EQ(copy(bytes), bytes_of_text("bc"));
  EXPECT_EQ(copy(all), bytes_of_text("abcdef"));
}

TEST(FileSource, AFileThatBecomesShorterIsAnError) {
  const Directory directory;
  const std::string path = directory.write("a", bytes_of_text("abcdef"));
  const auto source = open_file(path);
  ASSERT_TRUE(source);
  std::filesystem::resize_file(path, 3);
  const auto bytes = (*source)->read(0, 6);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::io);
  EXPECT_THAT(bytes.error().message, HasSubstr("became shorter"));
}

TEST(FileSource, AnEmptyFileHasNoBytes) {
  const Directory directory;
  const auto source = open_file(directory.write("a", {}));
  ASSERT_TRUE(source);
  EXPECT_TRUE((*source)->view()->empty());
}

}  // namespace
}  // namespace motley::data
