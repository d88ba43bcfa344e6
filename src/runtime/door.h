#pragma once
// Where other machines come in: a port of this machine, and the token that leads to it. Any thread.

#include <memory>
#include <string>

#include "cluster/token.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

struct Door {
  std::unique_ptr<transport::Listener> listener;
  std::string host;  // as it was asked for; "0.0.0.0": every address
};

/// `listen`: "ADDRESS:PORT"; empty: every address at `usual_port`, or at any other where that one is taken.
Result<Door> open_door(transport::Tcp& tcp, const std::string& listen, std::uint16_t usual_port,
                       const transport::AcceptHandler& on_accept);

/// A new secret and number, which `identity` answers to.
void renew(cluster::JoinToken& token, const transport::Identity& identity);

/// Its port, and the addresses that others may reach it by.
void lead_to(cluster::JoinToken& token, const Door& door);

/// Whole or not at all, and only this user may read it. Errors: io.
Status write_token_file(const std::string& file, const cluster::JoinToken& token);

}  // namespace motley::runtime
