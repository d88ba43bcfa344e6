#include "machine/error_words.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

namespace motley::machine {
namespace {

TEST(ErrorWords, HearWhatIsSaidAndPassItOn) {
  std::array<int, 2> there{};
  ASSERT_EQ(::pipe(there.data()), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(there[1], STDERR_FILENO);
  {
    ErrorWords words([](std::string_view line) { return line.find("command buffer") != std::string_view::npos; });
    EXPECT_EQ(words.take(), std::nullopt);
    for (const std::string text : {"a line\nthe command ", "buffer exited with error\nanother\n", "the rest"})
      EXPECT_EQ(::write(STDERR_FILENO, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(words.take(), "the command buffer exited with error");
    const std::string two = "command buffer 1\nnothing\ncommand buffer 2\n";
    EXPECT_EQ(::write(STDERR_FILENO, two.data(), two.size()), static_cast<ssize_t>(two.size()));
    EXPECT_EQ(words.take(), "the restcommand buffer 1 command buffer 2");
    EXPECT_EQ(words.take(), std::nullopt);
  }
  EXPECT_EQ(::write(STDERR_FILENO, "!", 1), 1);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(there[1]);
  std::string found(256, 0);
  found.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(there[0], found.data(), found.size()))));
  ::close(there[0]);
  EXPECT_EQ(found,
            "a line\nthe command buffer exited with error\nanother\nthe restcommand buffer 1\nnothing\n"
            "command buffer 2\n!");
}

}  // namespace
}  // namespace motley::machine
