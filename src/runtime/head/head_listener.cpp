#include "runtime/head/head_listener.h"

#include "base/format.h"
#include "runtime/head/train.h"
#include "store/secret_file.h"
#include "transport/addresses.h"

namespace motley::runtime {

Result<HeadListener> open_listener(transport::Tcp& tcp, const std::string& listen, std::uint16_t usual_port,
                                   const transport::AcceptHandler& on_accept) {
  transport::Endpoint endpoint{"0.0.0.0", usual_port};
  if (!listen.empty()) {
    Result<transport::Endpoint> parsed = parse_endpoint(listen);
    if (!parsed) return parsed.error();
    endpoint = std::move(*parsed);
  }
  Result<std::unique_ptr<transport::Listener>> listening = tcp.listen(endpoint, on_accept);
  if (!listening && listen.empty() && listening.error().code == ErrorCode::busy) {
    endpoint.port = 0;
    listening = tcp.listen(endpoint, on_accept);
  }
  if (!listening) return listening.error();
  return HeadListener{std::move(*listening), endpoint.host};
}

void open_locally(transport::Tcp& tcp, const fleet::JoinToken& token, const transport::AcceptHandler& on_accept,
                  HeadListener& head_listener) {
  Result<std::unique_ptr<transport::Listener>> listening = tcp.listen(local_endpoint(token), on_accept);
  if (listening) head_listener.local = std::move(*listening);
}

transport::Endpoint local_endpoint(const fleet::JoinToken& token) {
  return transport::local_endpoint("motley-" + formatted("%016llx.1", static_cast<unsigned long long>(token.run)));
}

std::vector<transport::Endpoint> network_endpoints(const fleet::JoinToken& token) {
  std::vector<transport::Endpoint> all;
  all.reserve(token.addresses.size() + 1);  // and the local one
  for (const std::string& address : token.addresses) all.push_back({address, token.port});
  return all;
}

std::vector<transport::Endpoint> endpoints(const fleet::JoinToken& token) {
  std::vector<transport::Endpoint> all = network_endpoints(token);
  all.insert(all.begin(), local_endpoint(token));
  return all;
}

std::vector<std::string> typed_addresses(const fleet::JoinToken& token) {
  std::vector<std::string> typed;
  typed.reserve(token.addresses.size());
  for (const std::string& address : token.addresses) {
    const bool is_usual = token.port == kDefaultPort;
    const bool in_brackets = !is_usual && address.find(':') != std::string::npos;
    typed.push_back((in_brackets ? "[" + address + "]" : address) + (is_usual ? "" : ":" + std::to_string(token.port)));
  }
  return typed;
}

void renew(fleet::JoinToken& token, const transport::Identity& identity) {
  token.spki = identity.spki;
  token.id = transport::random_u64();
  transport::random_bytes(token.secret);
}

void lead_to(fleet::JoinToken& token, const HeadListener& head_listener) {
  const bool every = head_listener.host.empty() || head_listener.host == "0.0.0.0" || head_listener.host == "::";
  token.port = head_listener.listener->port();
  token.addresses = every ? transport::local_addresses() : std::vector<std::string>{head_listener.host};
  if (token.addresses.size() > fleet::JoinToken::kAddressesMax) token.addresses.resize(fleet::JoinToken::kAddressesMax);
}

Status write_token_file(const std::string& file, const fleet::JoinToken& token) {
  const Status written = store::write_secret_file(file, fleet::to_text(token) + "\n");
  if (written) return {};
  return Error{written.error().code, file + ": the token cannot be written there: " + written.error().message,
               "check the directory of --token-file, and who owns it"};
}

}  // namespace motley::runtime
