// Local sockets between processes of one machine. The abstract namespace, and who is asked for, are Linux's.

#include "raw_peer.h"
#include "transport/crypto.h"

#ifdef __linux__

#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

namespace motley::transport {
namespace {

constexpr int kNobody = 65534;

Endpoint fresh_name() { return local_endpoint("motley-test-" + std::to_string(random_u64())); }

int local_socket() { return ::socket(AF_UNIX, SOCK_STREAM, 0); }

std::pair<sockaddr_un, socklen_t> address_of(const Endpoint& endpoint) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, endpoint.host.data() + 1, endpoint.host.size() - 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + endpoint.host.size())};
}

/// On a thread that is another user while it lasts: the system call changes one thread, the library's would change all.
template <class Action>
void as_nobody(Action action) {
  std::thread([&] {
    ASSERT_EQ(::syscall(SYS_setresuid, -1, kNobody, -1), 0);
    action();
  }).join();
}

TEST(TcpLocal, ANameIsOfOneListenerAtATime) {
  Tcp tcp(plain_options());
  const Endpoint name = fresh_name();
  auto first = tcp.listen(name, [](const auto&) {});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first.value()->port(), 0);
  const auto second = tcp.listen(name, [](const auto&) {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_NE(second.error().message.find(name.host), std::string::npos) << second.error().message;
  first.value()->close();
  EXPECT_TRUE(tcp.listen(name, [](const auto&) {}).ok());
  EXPECT_EQ(tcp.listen(local_endpoint(std::string(108, 'x')), [](const auto&) {}).error().code, ErrorCode::input);
}

TEST(TcpLocal, IsPlainBesideEncryptedConnections) {
  Tcp tcp(tls_options());
  const Endpoint name = fresh_name();
  std::promise<std::shared_ptr<Connection>> accepted;
  auto listener = tcp.listen(name, [&](std::shared_ptr<Connection> c) { accepted.set_value(std::move(c)); });
  ASSERT_TRUE(listener.ok());
  const auto connected = connect(tcp, {name}, Digest{});
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  const std::shared_ptr<Connection> there = accepted.get_future().get();
  for (const PeerIdentity& peer : {connected.value()->peer(), there->peer()}) {
    EXPECT_TRUE(peer.same_machine);
    EXPECT_FALSE(peer.encrypted);
    EXPECT_EQ(peer.address, "this machine");
  }
}

// So that a proof that was overheard, or given to somebody who took the name, is worth nothing on the next connection.
TEST(TcpLocal, EachConnectionHasAValueOfItsOwn) {
  Tcp tcp(plain_options());
  const Endpoint name = fresh_name();
  std::vector<std::array<std::uint8_t, 32>> values;
  for (int i = 0; i < 3; ++i) {
    std::promise<std::shared_ptr<Connection>> accepted;
    auto listener = tcp.listen(name, [&](std::shared_ptr<Connection> c) { accepted.set_value(std::move(c)); });
    ASSERT_TRUE(listener.ok());
    const auto connected = connect(tcp, {name});
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    const std::shared_ptr<Connection> there = accepted.get_future().get();
    EXPECT_EQ(connected.value()->peer().exporter, there->peer().exporter);
    EXPECT_EQ(std::ranges::count(values, there->peer().exporter), 0);
    values.push_back(there->peer().exporter);
  }
  EXPECT_EQ(std::ranges::count(values, std::array<std::uint8_t, 32>{}), 0);
}

// The coordinator's own draw goes into its value, so the same bytes again are not the same proof.
TEST(TcpLocal, WhatIsReplayedIsAnswered) {
  Tcp tcp(plain_options());
  const Endpoint name = fresh_name();
  const auto [address, size] = address_of(name);
  std::vector<std::array<std::uint8_t, 32>> values;
  for (int i = 0; i < 2; ++i) {
    std::promise<std::shared_ptr<Connection>> accepted;
    auto listener = tcp.listen(name, [&](std::shared_ptr<Connection> c) { accepted.set_value(std::move(c)); });
    ASSERT_TRUE(listener.ok());
    RawPeer again(local_socket());
    ASSERT_EQ(::connect(again.fd(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_TRUE(again.send(std::vector<std::byte>(32, std::byte{7})));
    values.push_back(accepted.get_future().get()->peer().exporter);
  }
  EXPECT_NE(values[0], values[1]);
}

TEST(TcpLocal, WhereNobodyListensTheNetworkIsTried) {
  Tcp tcp(plain_options());
  Door door(plain_options());
  const auto result = connect(tcp, {fresh_name(), {"127.0.0.1", door.port()}});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.value()->peer().same_machine);

  const Endpoint name = fresh_name();
  const auto alone = connect(tcp, {name});
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().message.find(name.host), std::string::npos) << alone.error().message;
  const auto beside = connect(tcp, {name, {"no-such-machine.invalid", 1}});
  ASSERT_FALSE(beside.ok());
  EXPECT_EQ(beside.error().message.find(name.host), std::string::npos) << beside.error().message;
}

TEST(TcpLocal, AnotherUserDoesNotGetIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  Tcp tcp(plain_options());
  const Endpoint name = fresh_name();
  std::atomic<int> accepted{0};
  auto listener = tcp.listen(name, [&](const auto&) { ++accepted; });
  ASSERT_TRUE(listener.ok());
  as_nobody([&] {
    const auto [address, size] = address_of(name);
    RawPeer stranger(local_socket());
    ASSERT_EQ(::connect(stranger.fd(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_TRUE(stranger.closed_by_peer());
  });
  EXPECT_EQ(accepted, 0);
  ASSERT_TRUE(connect(tcp, {name}).ok());
}

TEST(TcpLocal, TheNameIsNoUseToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const Endpoint name = fresh_name();
  const int squatter = local_socket();
  as_nobody([&] {
    const auto [address, size] = address_of(name);
    ASSERT_EQ(::bind(squatter, reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(squatter, 8), 0);
  });
  const RawPeer owner(squatter);
  Tcp tcp(plain_options());
  Door door(plain_options());
  const auto result = connect(tcp, {name, {"127.0.0.1", door.port()}});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.value()->peer().same_machine);
}

}  // namespace
}  // namespace motley::transport

#endif
