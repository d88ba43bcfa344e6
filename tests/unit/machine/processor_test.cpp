#include "machine/processor.h"

#include <gtest/gtest.h>

#include <thread>

namespace motley::machine {
namespace {

TEST(ProcessorTest, SaysWhatThisMachineHas) {
  EXPECT_FALSE(processor_name().empty());
  EXPECT_EQ(processor_name().find_first_of("\n\t"), std::string::npos);
  EXPECT_GT(memory_bytes(), std::uint64_t{64} << 20);
  EXPECT_GE(allowed_processors(), 1U);
  EXPECT_LE(allowed_processors(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace motley::machine
