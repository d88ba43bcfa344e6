// What a process that is forked from this one has of its sockets: nothing.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw_peer.h"

namespace motley::transport {
namespace {

int open_sockets() {
  int found = 0;
  for (int handle = 0; handle < 1024; ++handle) {
    struct stat about{};
    if (::fstat(handle, &about) == 0 && S_ISSOCK(about.st_mode)) ++found;
  }
  return found;
}

int open_sockets_of_a_child() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(open_sockets());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(TcpForked, AChildHasNeitherPortsNorConnections) {
  const int before = open_sockets();
  {
    Tcp tcp(plain_options());
    std::promise<std::shared_ptr<Connection>> accepted;
    auto listener =
        tcp.listen({"127.0.0.1", 0}, [&](std::shared_ptr<Connection> c) { accepted.set_value(std::move(c)); });
    ASSERT_TRUE(listener.ok());
    const auto connected = connect(tcp, {Endpoint{"127.0.0.1", listener.value()->port()}}, Digest{});
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    const std::shared_ptr<Connection> there = accepted.get_future().get();
    EXPECT_EQ(open_sockets(), before + 3);
    EXPECT_EQ(open_sockets_of_a_child(), before);
    EXPECT_EQ(open_sockets(), before + 3);
    listener.value()->close();
    EXPECT_EQ(open_sockets(), before + 2);
    EXPECT_EQ(open_sockets_of_a_child(), before);
  }
  EXPECT_EQ(open_sockets(), before);
  EXPECT_EQ(open_sockets_of_a_child(), before);
}

}  // namespace
}  // namespace motley::transport
