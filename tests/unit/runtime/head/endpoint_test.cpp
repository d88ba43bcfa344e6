#include <gtest/gtest.h>

#include "runtime/head/train.h"

namespace motley::runtime {
namespace {

TEST(Endpoint, TakesTheUsualForms) {
  const auto host_of = [](const char* text) { return parse_endpoint(text)->host; };
  EXPECT_EQ(host_of("127.0.0.1:80"), "127.0.0.1");
  EXPECT_EQ(host_of("[::1]:80"), "::1");
  EXPECT_EQ(host_of(":80"), "0.0.0.0");
  EXPECT_EQ(host_of("80"), "0.0.0.0");
  EXPECT_EQ(parse_endpoint("desktop.local:7117")->port, 7117);
}

TEST(Endpoint, RefusesTheRest) {
  for (const char* text : {"", ":", "host:", "host:port", "1.2.3.4:70000", "1.2.3.4:-1", "1.2.3.4:80x"}) {
    EXPECT_FALSE(parse_endpoint(text)) << text;
  }
}

}  // namespace
}  // namespace motley::runtime
