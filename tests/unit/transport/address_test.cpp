#include "transport/tcp/address.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

// From macOS 15 on a program that may not reach the local network is told so, and nothing else.
TEST(Reasons, OnAMacNoRouteMayBeAPermission) {
  const std::string on_mac = reason_of(net::error::host_unreachable, true);
  EXPECT_NE(on_mac.find("Privacy & Security, Local Network"), std::string::npos) << on_mac;
  EXPECT_EQ(reason_of(net::error::host_unreachable, false), "no route to it");
  EXPECT_EQ(reason_of(net::error::network_unreachable, true), "no route to it") << "that is about no permission";
  EXPECT_EQ(reason_of(net::error::connection_refused, true), reason_of(net::error::connection_refused, false));
}

}  // namespace
}  // namespace motley::transport
