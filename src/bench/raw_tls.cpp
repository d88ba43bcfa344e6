#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <thread>

#include "base/assert.h"
#include "bench/raw.h"
#include "transport/crypto.h"

namespace motley::bench {
namespace {

using Context = std::shared_ptr<SSL_CTX>;

Context make_context() {
  const transport::Identity identity = transport::make_identity();
  Context context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  MOTLEY_ASSERT(context != nullptr);
  SSL_CTX* ssl = context.get();
  bool good = SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1;
  good = good && SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1;
  good = good && SSL_CTX_set_num_tickets(ssl, 0) == 1;  // or what is sent last may be lost, as in src/transport
  const auto pem = [&identity] { return BIO_new_mem_buf(identity.pem.data(), static_cast<int>(identity.pem.size())); };
  const std::unique_ptr<BIO, int (*)(BIO*)> key_text(pem(), BIO_free), certificate_text(pem(), BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  good = good && SSL_CTX_use_certificate(ssl, certificate.get()) == 1 && SSL_CTX_use_PrivateKey(ssl, key.get()) == 1;
  MOTLEY_ASSERT(good);
  return context;
}

class TlsStream final : public RawStream {
 public:
  TlsStream(Context context, int socket)
      : context_(std::move(context)), ssl_(SSL_new(context_.get()), SSL_free), socket_(socket) {
    MOTLEY_ASSERT(ssl_ != nullptr && SSL_set_fd(ssl_.get(), socket) == 1);
  }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() override { ::close(socket_); }
  void connect() { MOTLEY_ASSERT(SSL_connect(ssl_.get()) == 1); }
  void accept() { MOTLEY_ASSERT(SSL_accept(ssl_.get()) == 1); }
  void send(const char* data, std::size_t size) override {
    std::size_t count = 0;
    MOTLEY_ASSERT(SSL_write_ex(ssl_.get(), data, size, &count) == 1 && count == size);
  }
  std::size_t receive(char* data, std::size_t size) override {
    std::size_t count = 0;
    MOTLEY_ASSERT(SSL_read_ex(ssl_.get(), data, size, &count) == 1);
    return count;
  }

 private:
  Context context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  int socket_;
};

}  // namespace

Result<RawPair> raw_tls() {
  const Result<std::pair<int, int>> sockets = raw_sockets();
  if (!sockets) return sockets.error();
  const Context context = make_context();
  auto near = std::make_unique<TlsStream>(context, sockets->first);
  auto far = std::make_unique<TlsStream>(context, sockets->second);
  std::thread other([&far] { far->accept(); });
  near->connect();
  other.join();
  return RawPair(std::move(near), std::move(far));
}

}  // namespace motley::bench
