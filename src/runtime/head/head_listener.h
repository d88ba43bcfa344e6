#pragma once
// Where workers of other processes come in: a port of this machine, a local socket, and the token that leads to both.
// Any thread.

#include <memory>
#include <string>
#include <vector>

#include "fleet/token.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

struct HeadListener {
  std::unique_ptr<transport::Listener> listener;
  std::string host;                                 // as it was asked for; "0.0.0.0": every address
  std::unique_ptr<transport::Listener> local = {};  // may be missing: a run does without
};

/// `listen`: "ADDRESS:PORT"; empty: every address at `usual_port`, or at any other where that one is taken.
Result<HeadListener> open_listener(transport::Tcp& tcp, const std::string& listen, std::uint16_t usual_port,
                                   const transport::AcceptHandler& on_accept);

/// Opens the one for processes of this machine as well.
void open_locally(transport::Tcp& tcp, const fleet::JoinToken& token, const transport::AcceptHandler& on_accept,
                  HeadListener& head_listener);

/// What a process of the coordinator's own machine tries before all others.
[[nodiscard]] transport::Endpoint local_endpoint(const fleet::JoinToken& token);
[[nodiscard]] std::vector<transport::Endpoint> network_endpoints(const fleet::JoinToken& token);
/// The first, then the others.
[[nodiscard]] std::vector<transport::Endpoint> endpoints(const fleet::JoinToken& token);

/// Its addresses as people type them for `motley join`: "192.168.1.7"; with the port where that is not kDefaultPort.
[[nodiscard]] std::vector<std::string> typed_addresses(const fleet::JoinToken& token);

/// A new secret and number, which `identity` answers to.
void renew(fleet::JoinToken& token, const transport::Identity& identity);

/// Its port, and the addresses that others may reach it by.
void lead_to(fleet::JoinToken& token, const HeadListener& head_listener);

/// Whole or not at all, and only this user may read it. Errors: io.
Status write_token_file(const std::string& file, const fleet::JoinToken& token);

}  // namespace motley::runtime
