#include "blocking_tls.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/assert.h"
#include "transport/crypto.h"

namespace motley::bench {

struct BlockingTlsContext::State {
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> ssl{SSL_CTX_new(TLS_method()), SSL_CTX_free};
};

BlockingTlsContext::BlockingTlsContext() : state_(std::make_shared<State>()) {
  SSL_CTX* ssl = state_->ssl.get();
  MOTLEY_ASSERT(ssl != nullptr);
  const transport::Identity identity = transport::make_identity();
  bool good = SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1;
  good = good && SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1;
  good = good && SSL_CTX_set_num_tickets(ssl, 0) == 1;  // or what is sent last may be lost, as in tls.cpp
  const auto pem = [&identity] { return BIO_new_mem_buf(identity.pem.data(), static_cast<int>(identity.pem.size())); };
  const std::unique_ptr<BIO, int (*)(BIO*)> key_text(pem(), BIO_free), certificate_text(pem(), BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  good = good && SSL_CTX_use_certificate(ssl, certificate.get()) == 1 && SSL_CTX_use_PrivateKey(ssl, key.get()) == 1;
  MOTLEY_ASSERT(good);
}

struct BlockingTls::State {
  std::shared_ptr<BlockingTlsContext::State> context;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl;
};

BlockingTls::BlockingTls(const BlockingTlsContext& context, int socket)
    : state_(new State{context.state_, {SSL_new(context.state_->ssl.get()), SSL_free}}) {
  MOTLEY_ASSERT(state_->ssl != nullptr && SSL_set_fd(state_->ssl.get(), socket) == 1);
}
BlockingTls::~BlockingTls() = default;

void BlockingTls::connect() { MOTLEY_ASSERT(SSL_connect(state_->ssl.get()) == 1); }
void BlockingTls::accept() { MOTLEY_ASSERT(SSL_accept(state_->ssl.get()) == 1); }

void BlockingTls::send(const char* data, std::size_t size) {
  std::size_t count = 0;
  MOTLEY_ASSERT(SSL_write_ex(state_->ssl.get(), data, size, &count) == 1 && count == size);
}

std::size_t BlockingTls::receive(char* data, std::size_t size) {
  std::size_t count = 0;
  MOTLEY_ASSERT(SSL_read_ex(state_->ssl.get(), data, size, &count) == 1);
  return count;
}

}  // namespace motley::bench
