// The records of a connection against those of OpenSSL's own SSL_read and SSL_write.

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "raw_peer.h"

namespace motley::transport {
namespace {

using Ssl = std::unique_ptr<SSL, void (*)(SSL*)>;
using SslContext = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

SslContext openssl_context(const char* suites) {
  SslContext context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  const Identity identity = make_identity();
  const auto pem = [&identity] { return BIO_new_mem_buf(identity.pem.data(), static_cast<int>(identity.pem.size())); };
  const std::unique_ptr<BIO, int (*)(BIO*)> key_text(pem(), BIO_free), certificate_text(pem(), BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  EXPECT_EQ(SSL_CTX_set_ciphersuites(context.get(), suites), 1);
  constexpr unsigned char kProtocol[] = {8, 'm', 'o', 't', 'l', 'e', 'y', '/', '1'};
  EXPECT_EQ(SSL_CTX_set_alpn_protos(context.get(), kProtocol, sizeof kProtocol), 0);
  return context;
}

Ssl openssl_client(const SslContext& context, const RawPeer& peer) {
  Ssl ssl(SSL_new(context.get()), SSL_free);
  EXPECT_EQ(SSL_set_fd(ssl.get(), peer.fd()), 1);
  EXPECT_EQ(SSL_connect(ssl.get()), 1);
  return ssl;
}

void ssl_send(const Ssl& ssl, std::span<const std::byte> bytes) {
  std::size_t count = 0;
  ASSERT_EQ(SSL_write_ex(ssl.get(), bytes.data(), bytes.size(), &count), 1);
}

void ssl_send(const Ssl& ssl, const wire::Frame& frame) {
  ssl_send(ssl, wire::encode_header(frame.header));
  if (!frame.body.bytes().empty()) ssl_send(ssl, frame.body.bytes());
}

std::vector<std::byte> ssl_receive(const Ssl& ssl, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t have = 0; have < size;) {
    std::size_t count = 0;
    if (SSL_read_ex(ssl.get(), bytes.data() + have, size - have, &count) != 1) return {};
    have += count;
  }
  return bytes;
}

/// Sends back what comes.
struct Echo : Receiver {
  void on_frame(wire::Frame frame) override { connection->send(std::move(frame), Priority::gradients); }
  void on_closed(Error error) override {
    closed.set_value(std::move(error));
    connection.reset();
  }
  std::shared_ptr<Connection> connection;
  std::promise<Error> closed;
};

class EchoServer {
 public:
  EchoServer() : tcp_(tls_options()) {
    auto listener = tcp_.listen({"127.0.0.1", 0}, [this](std::shared_ptr<Connection> connection) {
      connection->mark_proven();
      echo_->connection = connection;
      connection->start(echo_);
    });
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
  }
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }
  Error wait_closed() { return echo_->closed.get_future().get(); }

 private:
  std::shared_ptr<Echo> echo_ = std::make_shared<Echo>();
  Tcp tcp_;
  std::unique_ptr<Listener> listener_;
};

wire::Frame numbered_frame(std::size_t size) {
  wire::FrameHeader header;
  header.type = wire::FrameType::gradient;
  std::vector<std::byte> body(size);
  for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<std::byte>(i * 7 + i / 251);
  return wire::seal(header, SharedBytes::copy_of(body));
}

void expect_echo(const Ssl& ssl, const wire::Frame& frame) {
  ssl_send(ssl, frame);
  const std::vector<std::byte> header = ssl_receive(ssl, wire::kHeaderBytes);
  EXPECT_TRUE(std::ranges::equal(header, wire::encode_header(frame.header)));
  EXPECT_TRUE(std::ranges::equal(ssl_receive(ssl, frame.body.size()), frame.body.bytes()));
}

class TcpOpenssl : public testing::TestWithParam<const char*> {};

TEST_P(TcpOpenssl, ReadsWhatItWritesAndWritesWhatItReads) {
  EchoServer server;
  const RawPeer peer = RawPeer::connect(server.port());
  const SslContext context = openssl_context(GetParam());
  const Ssl ssl = openssl_client(context, peer);
  EXPECT_STREQ(SSL_get_cipher_name(ssl.get()), GetParam());
  for (const std::size_t size : {0, 1, 100, 16 << 10, 50'000, 256 << 10}) expect_echo(ssl, numbered_frame(size));
  // New keys in the middle, of OpenSSL's own making.
  EXPECT_EQ(SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
  expect_echo(ssl, numbered_frame(40'000));
  EXPECT_EQ(SSL_shutdown(ssl.get()), 0);
  EXPECT_NE(server.wait_closed().message.find("closed by the other side"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, TcpOpenssl,
                         testing::Values("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                         "TLS_CHACHA20_POLY1305_SHA256"));

TEST(TcpOpensslEnds, AskingForOtherKeysIsAnswered) {
  EchoServer server;
  const RawPeer peer = RawPeer::connect(server.port());
  const SslContext context = openssl_context("TLS_AES_128_GCM_SHA256");
  const Ssl ssl = openssl_client(context, peer);
  expect_echo(ssl, numbered_frame(10));
  EXPECT_EQ(SSL_key_update(ssl.get(), SSL_KEY_UPDATE_REQUESTED), 1);
  expect_echo(ssl, numbered_frame(11));  // goes behind the question, the answer before what comes back
  expect_echo(ssl, numbered_frame(12));
}

TEST(TcpOpensslEnds, ATornFrameIsNoFarewell) {
  EchoServer server;
  const RawPeer peer = RawPeer::connect(server.port());
  const SslContext context = openssl_context("TLS_AES_128_GCM_SHA256");
  const Ssl ssl = openssl_client(context, peer);
  const wire::Frame frame = numbered_frame(1000);
  ssl_send(ssl, wire::encode_header(frame.header));
  ssl_send(ssl, frame.body.bytes().first(500));
  EXPECT_EQ(SSL_shutdown(ssl.get()), 0);
  EXPECT_NE(server.wait_closed().message.find("in the middle of a frame"), std::string::npos);
}

TEST(TcpOpensslEnds, AnEndWithoutAFarewellIsNone) {
  EchoServer server;
  RawPeer peer = RawPeer::connect(server.port());
  const SslContext context = openssl_context("TLS_AES_128_GCM_SHA256");
  const Ssl ssl = openssl_client(context, peer);
  expect_echo(ssl, numbered_frame(10));
  peer.end();
  EXPECT_NE(server.wait_closed().message.find("without a farewell"), std::string::npos);
}

}  // namespace
}  // namespace motley::transport
