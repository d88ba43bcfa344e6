#include "runtime/head/reception.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "../../store/temporary.h"
#include "runtime/head/head_listener.h"

namespace motley::runtime {
namespace {

using Link = std::shared_ptr<transport::Connection>;
constexpr std::chrono::seconds kPatience{10};

class ReceptionTest : public testing::Test {
 protected:
  ReceptionTest() {
    const transport::Identity identity = transport::make_identity();
    fleet::JoinToken token;
    token.plaintext = true;
    token.run = transport::random_u64();
    renew(token, identity);
    EXPECT_TRUE(reception_.open(identity, "127.0.0.1:0", 0, token).ok());
  }
  /// A connection by the token's way.
  Link connect() {
    std::promise<Result<Link>> made;
    client_.connect(endpoints(reception_.token()), std::nullopt, kPatience,
                    [&made](Result<Link> link) { made.set_value(std::move(link)); });
    Result<Link> link = made.get_future().get();
    EXPECT_TRUE(link.ok());
    return link ? *link : nullptr;
  }
  /// Lets guests in; the first of them.
  std::future<Link> first_guest() {
    auto came = std::make_shared<std::promise<Link>>();
    auto first = std::make_shared<std::once_flag>();
    reception_.receive([came, first](const Link& link) { std::call_once(*first, [&] { came->set_value(link); }); });
    return came->get_future();
  }

  Reception reception_;
  transport::Tcp client_{{.plaintext = true, .identity = {}}};
};

TEST_F(ReceptionTest, WhoComesBeforeTheFirstRunWaits) {
  const Link here = connect();
  std::future<Link> guest = first_guest();
  ASSERT_EQ(guest.wait_for(kPatience), std::future_status::ready);
  EXPECT_NE(guest.get(), nullptr);
}

TEST_F(ReceptionTest, WhoComesBetweenTwoRunsWaitsForTheSecond) {
  std::future<Link> of_first_run = first_guest();
  const Link first = connect();
  ASSERT_EQ(of_first_run.wait_for(kPatience), std::future_status::ready);
  reception_.pause();
  const Link second = connect();
  std::future<Link> of_second_run = first_guest();
  ASSERT_EQ(of_second_run.wait_for(kPatience), std::future_status::ready);
  EXPECT_NE(of_second_run.get(), of_first_run.get());
}

TEST_F(ReceptionTest, TheTokenLeadsToItsPort) {
  EXPECT_TRUE(reception_.is_open());
  EXPECT_NE(reception_.token().port, 0);
  EXPECT_EQ(reception_.token().spki, reception_.identity().spki);
}

TEST_F(ReceptionTest, TheTokensFileGoesWithARunThatIsOver) {
  const store::test::TemporaryDirectory dir;
  const std::string file = (dir / "token").string();
  for (const bool over : {false, true}) {
    ASSERT_TRUE(reception_.show_in(file));
    EXPECT_EQ(store::test::slurp(file), fleet::to_text(reception_.token()) + "\n");
    reception_.ended(over);
  }
  reception_.close();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(ReceptionTest, TheTokensFileStaysForARunThatIsToGoOn) {
  const store::test::TemporaryDirectory dir;
  const std::string file = (dir / "token").string();
  ASSERT_TRUE(reception_.show_in(file));
  reception_.ended(false);
  reception_.close();
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(ReceptionTest, AnotherHeadsTokenStays) {
  const store::test::TemporaryDirectory dir;
  const std::string file = (dir / "token").string();
  ASSERT_TRUE(reception_.show_in(file));
  reception_.ended(true);
  fleet::JoinToken other = reception_.token();
  other.run += 1;
  ASSERT_TRUE(write_token_file(file, other));
  reception_.close();
  EXPECT_TRUE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace motley::runtime
