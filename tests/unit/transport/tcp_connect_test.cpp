// Listening and connecting: what goes wrong is said with the address and what to try.

#include "raw_peer.h"

namespace motley::transport {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TcpListen, PortInUseIsNamed) {
  Door door(plain_options());
  Tcp tcp(plain_options());
  const auto second = tcp.listen({"127.0.0.1", door.port()}, [](const auto&) {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_TRUE(has(second.error().message, "127.0.0.1:" + std::to_string(door.port()))) << second.error().message;
  EXPECT_TRUE(has(second.error().hint, "--listen"));
}

TEST(TcpListen, BadAddressesAreInputErrors) {
  Tcp tcp(plain_options());
  for (const char* host : {"1.2.3.4.5", "not an address", "203.0.113.7"}) {
    const auto listener = tcp.listen({host, 0}, [](const auto&) {});
    ASSERT_FALSE(listener.ok()) << host;
    EXPECT_EQ(listener.error().code, ErrorCode::input) << listener.error().message;
    EXPECT_TRUE(has(listener.error().message, host)) << listener.error().message;
  }
}

TEST(TcpListen, ClosedListenerFreesItsPort) {
  Tcp tcp(plain_options());
  auto first = tcp.listen({"127.0.0.1", 0}, [](const auto&) {});
  ASSERT_TRUE(first.ok());
  const std::uint16_t port = first.value()->port();
  first.value()->close();
  first.value()->close();
  EXPECT_TRUE(tcp.listen({"127.0.0.1", port}, [](const auto&) {}).ok());
}

TEST(TcpListen, OneSocketForBothFamilies) {
  Tcp tcp(plain_options());
  std::promise<std::shared_ptr<Connection>> accepted;
  auto listener = tcp.listen({"::", 0}, [&](std::shared_ptr<Connection> c) { accepted.set_value(std::move(c)); });
  if (!listener) GTEST_SKIP() << "no IPv6 here: " << listener.error().message;
  ASSERT_TRUE(connect(tcp, {{"127.0.0.1", listener.value()->port()}}).ok());
  EXPECT_TRUE(accepted.get_future().get()->peer().address.starts_with("127.0.0.1:"));
}

TEST(TcpConnect, NobodyListens) {
  Tcp tcp(plain_options());
  std::uint16_t port = 0;
  {
    port = Door(plain_options()).port();
  }
  const auto result = connect(tcp, {{"127.0.0.1", port}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::network);
  EXPECT_TRUE(has(result.error().message, "127.0.0.1:" + std::to_string(port))) << result.error().message;
  EXPECT_TRUE(has(result.error().message, "connection refused")) << result.error().message;
  EXPECT_FALSE(result.error().hint.empty());
  EXPECT_TRUE(nobody_listens(result.error()));
}

TEST(TcpConnect, EveryAddressIsTriedAndNamed) {
  Tcp tcp(plain_options());
  std::uint16_t dead = 0;
  {
    dead = Door(plain_options()).port();
  }
  const auto failed = connect(tcp, {{"127.0.0.1", dead}, {"no-such-machine.invalid", 1}, {"127.0.0.2", dead}});
  ASSERT_FALSE(failed.ok());
  for (const char* part : {"127.0.0.1", "no-such-machine.invalid:1", "127.0.0.2"}) {
    EXPECT_TRUE(has(failed.error().message, part)) << failed.error().message;
  }
  Door door(plain_options());
  EXPECT_TRUE(connect(tcp, {{"127.0.0.1", dead}, {"localhost", door.port()}, {"127.0.0.2", dead}}).ok());
  EXPECT_FALSE(connect(tcp, {}).ok());
}

TEST(TcpConnect, AnAddressThatDoesNotAnswerTakesItsShareOfTheTimeOnly) {
  SilentServer silent;
  const TcpOptions server = tls_options();
  Door door(server);
  Tcp tcp(tls_options());
  const auto late = connect(tcp, {{"127.0.0.1", silent.port()}}, server.identity->spki, std::chrono::milliseconds(50));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::network);
  EXPECT_TRUE(has(late.error().message, "no answer within")) << late.error().message;
  EXPECT_TRUE(connect(tcp, {{"127.0.0.1", silent.port()}, {"127.0.0.1", door.port()}}, server.identity->spki,
                      std::chrono::milliseconds(2000))
                  .ok());
}

TEST(TcpConnect, AnotherKeyIsRefused) {
  Door door(tls_options());
  Tcp tcp(tls_options());
  const auto result = connect(tcp, {{"127.0.0.1", door.port()}}, make_identity().spki);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::refused);
  EXPECT_TRUE(has(result.error().message, "is not the coordinator this token was made for")) << result.error().message;
  EXPECT_TRUE(has(result.error().message, "127.0.0.1:" + std::to_string(door.port())));
}

TEST(TcpConnect, EncryptedClientPlaintextServer) {
  Door door(plain_options());
  Tcp tcp(tls_options());
  const auto result = connect(tcp, {{"127.0.0.1", door.port()}}, make_identity().spki);
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(has(result.error().message, "expected TLS 1.3")) << result.error().message;
  EXPECT_TRUE(has(result.error().hint, "--plaintext"));
  const Error there = door.wait_ended(1).back();
  EXPECT_EQ(there.code, ErrorCode::protocol);
  EXPECT_TRUE(has(there.message, "speaks TLS")) << there.message;
}

TEST(TcpConnect, PlaintextClientEncryptedServer) {
  Door door(tls_options());
  Tcp tcp(plain_options());
  const auto result = connect(tcp, {{"127.0.0.1", door.port()}});
  ASSERT_TRUE(result.ok());
  auto receiver = std::make_shared<Ignore>();
  auto closed = receiver->closed.get_future();
  result.value()->start(receiver);
  result.value()->send(frame_of(wire::FrameType::control, 100), Priority::control);
  ASSERT_EQ(closed.wait_for(kPatience), std::future_status::ready);
  const Error error = closed.get();
  EXPECT_EQ(error.code, ErrorCode::protocol);
  EXPECT_TRUE(has(error.hint, "--plaintext")) << error.message;
}

TEST(TcpConnect, EndingTheTransportEndsAttempts) {
  SilentServer silent;
  std::promise<ErrorCode> ended;
  {
    Tcp tcp(tls_options());
    tcp.connect({{"127.0.0.1", silent.port()}}, Digest{}, kPatience,
                [&](const auto& result) { ended.set_value(result.error().code); });
  }
  auto future = ended.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(future.get(), ErrorCode::interrupted);
}

TEST(TcpConnect, HandlesMayOutliveTheTransport) {
  Door door(plain_options());
  std::shared_ptr<Connection> connection;
  std::unique_ptr<Listener> listener;
  {
    Tcp tcp(plain_options());
    connection = connect(tcp, {{"127.0.0.1", door.port()}}).value();
    listener = tcp.listen({"127.0.0.1", 0}, [](const auto&) {}).value();
  }
  connection->send(frame_of(wire::FrameType::control, 1), Priority::control);
  connection->mark_proven();
  connection->close();
  EXPECT_EQ(connection->queued_bytes(), 0U);
  listener->close();
}

}  // namespace
}  // namespace motley::transport
