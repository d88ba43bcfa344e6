#include "http/retrieve.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "../data/fixtures.h"

namespace motley::http {
namespace {

using data::RemoteFile;
using data::test::Bytes;
using data::test::bytes_of_text;
using data::test::digest_of;
using data::test::Directory;
using ::testing::HasSubstr;

/// Answers one HTTP request with the bytes it was given, then closes.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, text = std::move(answer)] { serve(text); });
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;
  ~OneAnswer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

 private:
  void serve(const std::string& text) const {
    const int peer = ::accept(listener_, nullptr, nullptr);
    if (peer < 0) return;
    std::string request;
    std::array<char, 1024> buffer{};
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(peer, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      request.append(buffer.data(), static_cast<std::size_t>(got));
    }
    static_cast<void>(::send(peer, text.data(), text.size(), MSG_NOSIGNAL));
    ::close(peer);
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

class Retrieving : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("no_proxy", "*", 1); }

  const Bytes content_ = bytes_of_text("what was published");
  const RemoteFile file_{"file.gz", digest_of(content_)};
  Directory directory_;
  const std::string cache_ = directory_.path() + "/cache";
};

TEST_F(Retrieving, ReportsProgressOverHttp) {
  const OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\nwhat was published");
  std::uint64_t last_done = 0;
  std::uint64_t last_total = 0;
  const Status status =
      fetch(retriever(), {server.url()}, file_, cache_, digest_of, [&](const std::string& file, auto done, auto total) {
        EXPECT_EQ(file, "file.gz");
        EXPECT_GE(done, last_done);
        last_done = done;
        last_total = total;
      });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(last_done, 18U);
  EXPECT_EQ(last_total, 18U);
}

TEST_F(Retrieving, RefusesATruncatedAnswer) {
  const OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\nwhat was");
  const Status status = fetch(retriever(), {server.url()}, file_, cache_, digest_of, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::network);
  EXPECT_TRUE(std::filesystem::is_empty(cache_));
}

TEST_F(Retrieving, RefusesAnErrorPage) {
  const OneAnswer server("HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\nwhat was published");
  const Status status = fetch(retriever(), {server.url()}, file_, cache_, digest_of, {});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("404"));
  EXPECT_TRUE(std::filesystem::is_empty(cache_));
}

TEST_F(Retrieving, IsNotLedFromHttpsToHttp) {
  EXPECT_STREQ(redirects_allowed("https://example.org/"), "https");
  EXPECT_STREQ(redirects_allowed("http://example.org/"), "http,https");
}

}  // namespace
}  // namespace motley::http
