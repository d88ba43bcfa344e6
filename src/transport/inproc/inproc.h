#pragma once
// Two connected ends in one process: frames are handed over by reference, on the thread of who sends them. So a sender
// holds no lock that the receiver wants.

#include <memory>
#include <utility>

#include "transport/connection.h"

namespace motley::transport {

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_inproc_pair();

}  // namespace motley::transport
