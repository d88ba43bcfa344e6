#include "transport/tcp/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "transport/x509.h"

namespace motley::transport {

/// What a session's BIO reads from and writes to.
struct TlsPipe {
  std::span<const std::byte> input;
  std::vector<std::byte> output;
};

namespace {

constexpr unsigned char kAlpn[] = {8, 'm', 'o', 't', 'l', 'e', 'y', '/', '1'};
constexpr char kExporterLabel[] = "EXPORTER-motley-join";
constexpr long kCertificateBytesMax = 8 << 10;

bool has_aes_hardware() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0;
#elif defined(__linux__) && defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return true;  // Apple's processors, and x86 under compilers without the query above
#endif
}

// AES-128 before AES-256: a quarter faster, and as strong as the P-256 keys around it. ChaCha20 first where AES has no
// hardware; SSL_OP_PRIORITIZE_CHACHA lets either side ask for that.
const char* cipher_suites() {
  return has_aes_hardware() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
                            : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384";
}

TlsPipe& pipe_of(BIO* bio) { return *static_cast<TlsPipe*>(BIO_get_data(bio)); }

int pipe_read(BIO* bio, char* data, std::size_t size, std::size_t* count) {
  TlsPipe& pipe = pipe_of(bio);
  BIO_clear_retry_flags(bio);
  *count = std::min(size, pipe.input.size());
  if (*count == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(data, pipe.input.data(), *count);
  pipe.input = pipe.input.subspan(*count);
  return 1;
}

int pipe_write(BIO* bio, const char* data, std::size_t size, std::size_t* count) {
  TlsPipe& pipe = pipe_of(bio);
  const std::byte* bytes = reinterpret_cast<const std::byte*>(data);
  pipe.output.insert(pipe.output.end(), bytes, bytes + size);
  *count = size;
  return 1;
}

long pipe_control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int select_alpn(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                unsigned int offered_size, void* /*context*/) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kAlpn, sizeof kAlpn, offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

struct TlsContext::State {
  SSL_CTX* ssl = nullptr;
  BIO_METHOD* method = nullptr;
};

struct TlsSession::State {
  SSL* ssl = nullptr;
  TlsPipe pipe;
  std::optional<Digest> pin;
  std::string failure;
  bool wrong_pin = false;
  bool not_tls = false;
  std::uint64_t records_a_key = 0;
  std::uint64_t records = 0;  // sealed since the keys were made

  void note_failure(const char* doing);
  /// In place of OpenSSL's chain building: certificates are self-signed, only their key counts. That the other side
  /// holds the private key is proven by the handshake itself.
  static int verify(X509_STORE_CTX* store, void* /*context*/) {
    const auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto* state = static_cast<State*>(SSL_get_app_data(ssl));
    const std::optional<Digest> spki = spki_of(X509_STORE_CTX_get0_cert(store));
    if (!state->pin || (spki && equal_constant_time(*spki, *state->pin))) return 1;
    state->wrong_pin = true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED);
    return 0;
  }
};

TlsContext::TlsContext(const Identity& identity) : state_(std::make_unique<State>()) {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "motley");
  MOTLEY_ASSERT(method != nullptr);
  BIO_meth_set_read_ex(method, pipe_read);
  BIO_meth_set_write_ex(method, pipe_write);
  BIO_meth_set_ctrl(method, pipe_control);
  state_->method = method;

  SSL_CTX* ssl = SSL_CTX_new(TLS_method());
  MOTLEY_ASSERT(ssl != nullptr);
  state_->ssl = ssl;
  bool ok = SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1;
  ok = ok && SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1;
  ok = ok && SSL_CTX_set_ciphersuites(ssl, cipher_suites()) == 1;
  // One kind of key: no peer can make us verify a signature of its choosing of 16,384 bits.
  ok = ok && SSL_CTX_set1_sigalgs_list(ssl, "ECDSA+SHA256") == 1;
  ok = ok && SSL_CTX_set1_groups_list(ssl, "X25519:P-256") == 1;
  // A peer that only writes and closes would leave unread tickets in the other's kernel, whose reset then destroys the
  // last bytes on the way (OpenSSL issue 7948). Sessions are long; nothing is lost without resumption.
  ok = ok && SSL_CTX_set_num_tickets(ssl, 0) == 1;
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_max_cert_list(ssl, kCertificateBytesMax);
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(ssl, &TlsSession::State::verify, nullptr);
  ok = ok && SSL_CTX_set_alpn_protos(ssl, kAlpn, sizeof kAlpn) == 0;  // this one returns zero for success
  SSL_CTX_set_alpn_select_cb(ssl, select_alpn, nullptr);

  BIO* key_bio = BIO_new_mem_buf(identity.pem.data(), static_cast<int>(identity.pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  BIO_free(key_bio);
  BIO* certificate_bio = BIO_new_mem_buf(identity.pem.data(), static_cast<int>(identity.pem.size()));
  X509* certificate = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  BIO_free(certificate_bio);
  ok = ok && SSL_CTX_use_certificate(ssl, certificate) == 1 && SSL_CTX_use_PrivateKey(ssl, key) == 1 &&
       SSL_CTX_check_private_key(ssl) == 1;
  X509_free(certificate);
  EVP_PKEY_free(key);
  MOTLEY_ASSERT(ok);
}

TlsContext::~TlsContext() {
  SSL_CTX_free(state_->ssl);
  BIO_meth_free(state_->method);
}

TlsSession::TlsSession(const TlsContext& context, TlsRole role, std::optional<Digest> pin, std::uint64_t records_a_key)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.pin = pin;
  state.records_a_key = records_a_key;
  state.ssl = SSL_new(context.state_->ssl);
  MOTLEY_ASSERT(state.ssl != nullptr);
  SSL_set_app_data(state.ssl, &state);
  BIO* bio = BIO_new(context.state_->method);
  MOTLEY_ASSERT(bio != nullptr);
  BIO_set_data(bio, &state.pipe);
  BIO_set_init(bio, 1);
  SSL_set_bio(state.ssl, bio, bio);
  if (role == TlsRole::client) {
    SSL_set_connect_state(state.ssl);
  } else {
    SSL_set_accept_state(state.ssl);
  }
}

TlsSession::~TlsSession() { SSL_free(state_->ssl); }

void TlsSession::provide(std::span<const std::byte> ciphertext) noexcept {
  MOTLEY_ASSERT(state_->pipe.input.empty());
  state_->pipe.input = ciphertext;
}

std::vector<std::byte>& TlsSession::output() noexcept { return state_->pipe.output; }
const std::string& TlsSession::failure() const noexcept { return state_->failure; }
bool TlsSession::wrong_pin() const noexcept { return state_->wrong_pin; }
bool TlsSession::not_tls() const noexcept { return state_->not_tls; }

void TlsSession::State::note_failure(const char* doing) {
  const unsigned long code = ERR_peek_error();
  const char* reason = ERR_reason_error_string(code);
  failure = std::string(doing) + ": " + (reason != nullptr ? reason : "unknown TLS failure");
  const int number = ERR_GET_REASON(code);
  not_tls = number == SSL_R_WRONG_VERSION_NUMBER || number == SSL_R_HTTP_REQUEST ||
            number == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || number == SSL_R_UNSUPPORTED_PROTOCOL;
  ERR_clear_error();
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(state_->ssl);
  if (result == 1) {
    const unsigned char* protocol = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(state_->ssl, &protocol, &size);
    const bool motley = size == sizeof kAlpn - 1 && std::memcmp(protocol, kAlpn + 1, size) == 0;
    if (motley) return Step::done;
    state_->failure = "the other side speaks TLS, but not the protocol motley/1";
    return Step::failed;
  }
  if (SSL_get_error(state_->ssl, result) == SSL_ERROR_WANT_READ) return Step::want_input;
  state_->note_failure("TLS handshake");
  if (state_->not_tls && state_->pipe.output.empty()) {
    const auto alert = std::as_bytes(std::span(kProtocolVersionAlert));
    state_->pipe.output.assign(alert.begin(), alert.end());  // OpenSSL leaves such a peer without an answer
  }
  return Step::failed;
}

void TlsSession::seal(std::span<const std::byte> plain) {
  MOTLEY_ASSERT(!plain.empty() && plain.size() <= kRecordBytes);
  if (++state_->records > state_->records_a_key) {  // OpenSSL leaves this to its callers
    MOTLEY_ASSERT(SSL_key_update(state_->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
    state_->records = 1;
  }
  std::size_t count = 0;
  MOTLEY_ASSERT(SSL_write_ex(state_->ssl, plain.data(), plain.size(), &count) == 1 && count == plain.size());
}

void TlsSession::seal_end() { SSL_shutdown(state_->ssl); }

TlsSession::Opened TlsSession::open(std::span<std::byte> plain) {
  using What = Opened::What;
  MOTLEY_ASSERT(!plain.empty());
  ERR_clear_error();
  std::size_t count = 0;
  if (SSL_read_ex(state_->ssl, plain.data(), plain.size(), &count) == 1) return {What::data, count};
  switch (SSL_get_error(state_->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
      return {What::want_input, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {What::end, 0};
    default:
      state_->note_failure("TLS record");
      return {What::failed, 0};
  }
}

Digest TlsSession::peer_spki() const {
  X509* certificate = SSL_get0_peer_certificate(state_->ssl);
  MOTLEY_ASSERT(certificate != nullptr);
  return spki_of(certificate).value_or(Digest{});
}

Digest TlsSession::exporter() const {
  Digest value{};
  MOTLEY_ASSERT(SSL_export_keying_material(state_->ssl, value.data(), value.size(), kExporterLabel,
                                           sizeof kExporterLabel - 1, nullptr, 0, 0) == 1);
  return value;
}

std::string TlsSession::cipher() const { return SSL_CIPHER_get_name(SSL_get_current_cipher(state_->ssl)); }

}  // namespace motley::transport
