#pragma once
// What a certificate is known by. For those who hold OpenSSL's types; others: crypto.h.

#include <openssl/types.h>

#include "transport/crypto.h"

namespace motley::transport {

/// SHA-256 of the certificate's public key in DER (SubjectPublicKeyInfo). REQUIRES that it has one.
Digest spki_of(const X509* certificate);

}  // namespace motley::transport
