#pragma once
// Two connected ends in one process: frames are handed over by reference. Delivery runs on the thread of a small
// executor owned by the pair, so that receivers see the same threading contract as with TCP.

#include <memory>
#include <utility>

#include "transport/connection.h"

namespace motley::transport {

std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> make_inproc_pair();

}  // namespace motley::transport
