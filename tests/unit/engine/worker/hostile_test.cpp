// A coordinator that asks for what is not there. The session ends with an error that names it.

#include <cstdint>
#include <limits>

#include "session.h"

namespace motley::engine {
namespace {

class WorkerHostile : public WorkerTest {
 protected:
  void refuses(const wire::Grant& grant, const std::string& what) {
    join(5);
    out.ends.clear();
    control(grant);
    EXPECT_TRUE(out.tasks.empty()) << what;
    ASSERT_EQ(out.ends.size(), 1u) << what;
    EXPECT_NE(out.ends[0].second.find(what), std::string::npos) << out.ends[0].second;
  }
  static wire::Grant of(PassKind kind, std::uint64_t first, std::uint64_t count, std::uint64_t pass_first = 0) {
    const std::uint64_t pass = std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | 5;
    return {.pass = pass, .lease = 1, .version = 5, .pass_first = pass_first, .first = first, .count = count};
  }
};

TEST_F(WorkerHostile, RangesOfWhatIsNotThereAreRefused) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  refuses(of(PassKind::train, 0, 513), "a lease is of 512 samples; found 513");
  refuses(of(PassKind::train, 0, std::uint64_t{1} << 62), "512 samples");
  refuses(of(PassKind::train, kMost - 3, 8, 8), "512 samples");  // positions that overflow
  refuses(of(PassKind::train, 0, 8, 510), "512 samples");        // an epoch that starts behind its end
  refuses(of(PassKind::evaluate, 60, 8), "64 samples");
  refuses(of(PassKind::calibrate, 0, 1000), "512 samples");
  wire::Grant without_a_number = of(PassKind::train, 0, 8);
  without_a_number.lease = 0;
  refuses(without_a_number, "a number above 0");
}
TEST_F(WorkerHostile, StepsFarFromTheirVersionAreRefused) {
  wire::Grant grant = of(PassKind::train, 0, 8);
  for (const std::uint64_t number : {4U, 7U}) {
    grant.pass = std::uint64_t{1} << 56 | number;
    refuses(grant, "found step " + std::to_string(number) + " at version 5");
  }
}

TEST_F(WorkerHostile, AsManyAsThereAreIsFine) {
  join(5);
  control(of(PassKind::train, 500, 8, 4));
  ASSERT_EQ(out.tasks.size(), 1u);
}

TEST_F(WorkerHostile, AnotherModelUnderTheNumberOfTheRunBefore) {
  wire::Grant grant = of(PassKind::train, 0, 8);
  grant.codec = static_cast<std::uint32_t>(wire::CodecId::int8);
  grant.feedback = true;
  join(5);
  control(grant);
  complete(1, 8);
  control(wire::Taken{grant.pass, grant.lease, {}});
  worker.disconnected("gone", now);

  layout = *Layout::make({tensor("big", {200, 400}), tensor("bias", {10})});
  join(5);
  grant.lease = 2;
  control(grant);
  ASSERT_EQ(out.tasks.size(), 2u);
  complete(2, 8);
  EXPECT_EQ(out.sent<wire::Finish>().size(), 2u);
}

}  // namespace
}  // namespace motley::engine
