// What a worker tells of its contribution's way to the coordinator.

#include "session.h"

namespace motley::engine {
namespace {

class WorkerSent : public WorkerTest {
 protected:
  void after(double seconds) { now += Duration(static_cast<std::int64_t>(1e9 * seconds)); }
  /// The lease's Finish.
  wire::Finish computed(std::uint64_t lease) {
    control(grant(0, lease));
    complete(out.tasks.back().number, 8);
    return out.sent<wire::Finish>().back();
  }
  std::uint64_t contribution() const {
    std::uint64_t bytes = 0;
    for (ChunkId chunk = 0; chunk < chunks(); ++chunk) bytes += chunk_bytes(chunk);
    return bytes;
  }
};

TEST_F(WorkerSent, TheNextFinishTellsOnceHowLongItTook) {
  join(0);
  EXPECT_EQ(computed(11).sent_lease, 0U);
  after(0.5);
  control(wire::Taken{pass_of(0), 11, {}});
  after(1);
  const wire::Finish next = computed(12);
  EXPECT_EQ(next.sent_lease, 11U);
  EXPECT_EQ(next.sent_bytes, contribution());
  EXPECT_DOUBLE_EQ(next.sent_seconds, 0.5);
  EXPECT_EQ(computed(13).sent_lease, 0U) << "12 is still under way";
}

TEST_F(WorkerSent, NothingIsToldWhereTheDeviceIsWhatWasWaitedFor) {
  join(0);
  control(grant(0, 11));
  const std::uint64_t task = out.tasks.back().number;
  worker.task_begin(task, 8, {1.5, 2.5}, now);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
    worker.task_chunk(task, chunk, filled(layout.chunks()[chunk].elements, 3.0F), now);
    after(1);
  }
  worker.task_finished(task, Outcome{8, 1.5, 2.5, 0}, 0.25, 0, now);
  after(1e-6);
  control(wire::Taken{pass_of(0), 11, {}});
  EXPECT_EQ(computed(12).sent_lease, 0U);
}

TEST_F(WorkerSent, AnotherSessionStartsAnew) {
  join(0);
  computed(11);
  after(0.5);
  control(wire::Taken{pass_of(0), 11, {}});
  worker.disconnected("reset", now);
  join(0);
  EXPECT_EQ(computed(11).sent_lease, 0U);
  worker.disconnected("reset", now);
  join(0);
  after(0.5);
  control(wire::Taken{pass_of(0), 11, {}});  // of the session before
  EXPECT_EQ(computed(12).sent_lease, 0U);
}

}  // namespace
}  // namespace motley::engine
