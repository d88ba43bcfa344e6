#pragma once
// What a certificate is known by, and who frees. For those who hold OpenSSL's types; others: crypto.h.

#include <openssl/types.h>

#include <optional>

#include "transport/crypto.h"

namespace motley::transport {

/// How a std::unique_ptr gives an object of OpenSSL's back.
template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};

/// SHA-256 of the certificate's public key in DER (SubjectPublicKeyInfo); nothing where it cannot be written so.
std::optional<Digest> spki_of(const X509* certificate);

}  // namespace motley::transport
