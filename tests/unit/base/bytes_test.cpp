#include "motley/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace motley {
namespace {

bool aligned(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data) % 64 == 0; }

TEST(SharedBytes, CopiesAreAlignedAndTheirOwn) {
  std::vector<std::byte> source{std::byte{1}, std::byte{2}, std::byte{3}};
  const SharedBytes copy = SharedBytes::copy_of(source);
  source[0] = std::byte{9};
  ASSERT_EQ(copy.size(), 3U);
  EXPECT_EQ(copy.bytes()[0], std::byte{1});
  EXPECT_TRUE(aligned(copy.bytes().data()));
}

TEST(SharedBytes, Empty) {
  EXPECT_TRUE(SharedBytes().empty());
  EXPECT_TRUE(SharedBytes::copy_of({}).empty());
  EXPECT_EQ(SharedBytes().slice(0, 0).size(), 0U);
}

TEST(SharedBytes, SlicesKeepTheWholeAlive) {
  SharedBytes slice;
  {
    std::vector<std::byte> source(100);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i);
    slice = SharedBytes::copy_of(source).slice(40, 8);
  }
  ASSERT_EQ(slice.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(slice.bytes()[i], static_cast<std::byte>(40 + i));
}

TEST(BufferPool, GivesWhatWasAskedAligned) {
  BufferPool pool;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257},
                                 std::size_t{65536}, (std::size_t{1} << 20) + 1, std::size_t{3} << 20}) {
    const MutableBytes buffer = pool.take(size);
    EXPECT_EQ(buffer.bytes().size(), size);
    EXPECT_TRUE(aligned(buffer.bytes().data()));
    std::ranges::fill(buffer.bytes(), std::byte{0x5A});
  }
}

TEST(BufferPool, UsesABufferAgainOnceNobodyHoldsIt) {
  BufferPool pool;
  const std::byte* address = nullptr;
  SharedBytes second_handle;
  {
    MutableBytes buffer = pool.take(1000);
    address = buffer.bytes().data();
    const SharedBytes sealed = std::move(buffer).seal();
    second_handle = sealed;
  }
  const MutableBytes other = pool.take(1000);
  EXPECT_NE(other.bytes().data(), address);  // still held
  second_handle = {};
  const MutableBytes again = pool.take(990);  // the same size class
  EXPECT_EQ(again.bytes().data(), address);
}

TEST(BufferPool, KeepsNoMoreThanItsLimit) {
  BufferPool pool(1024);
  {
    const MutableBytes large = pool.take(100000);
  }  // too large to be kept: the sanitizer would see a leak
  const std::byte* kept = nullptr;
  {
    const MutableBytes one = pool.take(1024);
    const MutableBytes two = pool.take(1024);
    kept = two.bytes().data();  // two is given back first, and there is room for one
  }
  const MutableBytes again = pool.take(1024);
  EXPECT_EQ(again.bytes().data(), kept);
}

TEST(BufferPool, BuffersOutliveThePool) {
  MutableBytes buffer;
  {
    BufferPool pool;
    buffer = pool.take(64);
  }
  std::ranges::fill(buffer.bytes(), std::byte{1});
  EXPECT_EQ(buffer.bytes()[63], std::byte{1});
}

TEST(BufferPool, ManyThreads) {
  BufferPool pool(1 << 16);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const MutableBytes buffer = pool.take(1 + (i * 37 + t) % 3000);
        std::ranges::fill(buffer.bytes(), static_cast<std::byte>(t));
        ASSERT_TRUE(std::ranges::all_of(buffer.bytes(), [t](std::byte b) { return b == static_cast<std::byte>(t); }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Bytes, FloatsAreTheBytes) {
  BufferPool pool;
  MutableBytes buffer = pool.take(8);
  buffer.floats()[0] = 1.0F;
  buffer.floats()[1] = -2.5F;
  const SharedBytes sealed = std::move(buffer).seal();
  ASSERT_EQ(sealed.floats().size(), 2U);
  EXPECT_EQ(sealed.floats()[1], -2.5F);
  EXPECT_EQ(sealed.bytes()[7], std::byte{0xC0});
}

}  // namespace
}  // namespace motley
