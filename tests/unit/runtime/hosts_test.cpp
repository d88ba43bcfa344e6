// CoordinatorHost and WorkerHosts in one process: whole short runs of the softmax model, with all their threads.

#include <algorithm>

#include "hosts_scene.h"
#include "runtime/head/head_listener.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {
namespace {

using namespace test;

TEST(Hosts, OneWorkerTrainsARun) {
  Scene scene;
  scene.host->start();
  scene.add_worker("here/cpu");
  expect_complete(scene);
  EXPECT_LT(scene.recorder.steps.back().loss, scene.recorder.steps.front().loss);
  EXPECT_EQ(scene.recorder.evals.size(), 3U);  // at the end of each epoch
  EXPECT_EQ(scene.recorder.evals.back().samples, kSamples);
  EXPECT_TRUE(scene.worker_ended[0].get_future().get());
}

TEST(Hosts, StepsMadeAloneHaveTheBitsOfStepsMadeByLease) {
  Scene alone, leased;
  for (Scene* scene : {&alone, &leased}) scene->host->start();
  alone.add_worker("here/cpu");
  leased.add_worker("here/cpu", "", false);
  ASSERT_TRUE(leased.wait());
  expect_complete(alone);
  EXPECT_EQ(alone.trained(), leased.trained());
  ASSERT_EQ(alone.recorder.steps.size(), leased.recorder.steps.size());
  for (std::size_t i = 0; i < kSteps; ++i) {
    const report::StepDone &one = alone.recorder.steps[i], &other = leased.recorder.steps[i];
    EXPECT_EQ(one.loss, other.loss) << i;
    EXPECT_EQ(one.learning_rate, other.learning_rate) << i;
    ASSERT_EQ(one.workers.size(), 1U);
    EXPECT_EQ(one.workers[0].samples, other.workers[0].samples);
    EXPECT_LE(one.workers[0].compute_s, one.seconds);
  }
}

TEST(Hosts, TheSplitDoesNotChangeTheResult) {
  Scene one, three({.min_workers = 3});
  for (Scene* scene : {&one, &three}) scene->host->start();
  one.add_worker("here/cpu");
  for (const char* name : {"here/cpu", "here/cpu#2", "here/cpu#3"}) three.add_worker(name);
  ASSERT_TRUE(one.wait());
  expect_complete(three);
  for (const report::StepDone& step : three.recorder.steps) {
    std::uint64_t samples = 0;
    for (const report::WorkerPart& part : step.workers) samples += part.samples;
    EXPECT_EQ(samples, kBatch);
  }
  const std::vector<float> expected = one.trained(), found = three.trained();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
}

#ifdef __linux__
TEST(Hosts, AProcessOfTheSameMachineNeedsNoNetwork) {
  const std::uint64_t run = transport::random_u64();
  Scene scene({.min_workers = 2, .run = run});
  fleet::JoinToken token;
  token.run = run;
  token.plaintext = true;
  token.addresses = {"127.0.0.1"};
  token.port = 1;  // nobody listens there
  transport::Tcp here({.plaintext = true, .identity = {}}), there({.plaintext = true, .identity = {}});
  HeadListener head_listener;
  open_locally(
      here, token, [&](auto connection) { scene.host->connections().accept(std::move(connection)); }, head_listener);
  ASSERT_NE(head_listener.local, nullptr);
  scene.host->start();
  scene.add_worker("here/cpu");
  scene.make_worker("there/cpu").run_remote(there, {}, token);
  expect_complete(scene);
  // What it computes is left to the machine: who is idle takes over all of a slow one's share.
  EXPECT_TRUE(std::ranges::any_of(scene.recorder.workers, [](const report::WorkerChanged& seen) {
    return seen.change == "joined" && seen.worker == "there/cpu";
  }));
  head_listener = {};
  scene.workers.clear();
}
#endif

TEST(Hosts, AWorkerWhoseHeadHasEndedEndsToo) {
  transport::Tcp there({.plaintext = true, .identity = {}});
  auto head = there.listen({"127.0.0.1", 0}, [](const auto&) {});
  ASSERT_TRUE(head) << message(head);
  fleet::JoinToken token;
  token.plaintext = true;
  token.addresses = {"127.0.0.1"};
  token.port = (*head)->port();
  (*head)->close();
  WorkerHostOptions options;
  options.hello = Scene::hello_of("late/cpu");
  options.deserted = std::chrono::milliseconds(300);
  std::promise<Status> ended;
  WorkerHostEvents events;
  events.ended = [&ended](Status status) { ended.set_value(std::move(status)); };
  WorkerHost late(std::move(options), std::move(events));
  late.run_remote(there, {}, token);
  const Status status = ended.get_future().get();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::network);
  EXPECT_NE(status.error().message.find("the head has ended"), std::string::npos) << status.error().message;
}

TEST(Hosts, SeveralDataConnectionsCarryOneSession) {
  std::vector<std::vector<float>> trained;
  for (const std::size_t connections : {1, 3}) {
    // Several chunks, of whose deltas each needs the version before.
    Scene scene({.side = 128, .weights = wire::CodecId::int8});
    transport::Tcp here({.plaintext = true, .identity = {}}), there({.plaintext = true, .identity = {}});
    std::atomic<std::size_t> accepted = 0;
    auto listener = here.listen({"127.0.0.1", 0}, [&](auto connection) {
      ++accepted;
      scene.host->connections().accept(std::move(connection));
    });
    ASSERT_TRUE(listener) << message(listener);
    fleet::JoinToken token;
    token.run = 1;
    token.plaintext = true;
    token.addresses = {"127.0.0.1"};
    token.port = (*listener)->port();
    scene.host->start();
    scene.make_worker("there/cpu", "", connections).run_remote(there, {}, token);
    expect_complete(scene);
    EXPECT_EQ(accepted, 1 + connections);
    EXPECT_TRUE(scene.worker_ended[0].get_future().get());
    trained.push_back(scene.trained());
    scene.workers.clear();
    (*listener)->close();
  }
  EXPECT_EQ(trained[0], trained[1]);
}

TEST(Hosts, AStoppedRunEndsAfterAStepWithACheckpointOfIt) {
  Scene scene;
  scene.recorder.on_step = [&](const report::StepDone& step) {
    if (step.step == 2) scene.host->stop();
  };
  scene.host->start();
  scene.add_worker("here/cpu");
  const Status status = scene.wait();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::interrupted);
  EXPECT_FALSE(scene.recorder.over.has_value());
  EXPECT_GE(scene.recorder.steps.size(), 3U);
  EXPECT_EQ(scene.recorder.checkpoints.back(), scene.recorder.steps.size());
  EXPECT_EQ(scene.audit().missing, 0U);
}

TEST(Hosts, AWorkerThatLeavesHandsItsSharesToTheOthers) {
  Scene scene({.min_workers = 2});
  scene.recorder.on_step = [&](const report::StepDone& step) {
    if (step.step == 1) scene.workers[1]->leave();
  };
  scene.add_worker("here/cpu");
  scene.add_worker("here/cpu#2");
  scene.host->start();
  expect_complete(scene);
  EXPECT_TRUE(scene.worker_ended[1].get_future().get());
}

TEST(Hosts, AWorkerThatVanishesCostsNothing) {
  Scene scene({.min_workers = 2});
  std::promise<void> second;
  scene.recorder.on_step = [&](const report::StepDone& step) {
    if (step.step == 1) second.set_value();
  };
  scene.add_worker("here/cpu");
  scene.add_worker("here/cpu#2");
  scene.host->start();
  second.get_future().get();
  scene.workers[1].reset();
  expect_complete(scene);
}

TEST(Hosts, AWorkerWithOtherDataIsRefused) {
  Scene scene;
  scene.host->start();
  scene.add_worker("here/other", "other data");
  const Status refused = scene.worker_ended[0].get_future().get();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("other data"), std::string::npos) << refused.error().message;
  scene.add_worker("here/cpu");
  expect_complete(scene);
  EXPECT_EQ(scene.recorder.workers.front().change, "refused");
}

TEST(Hosts, DestroyingARunInTheMiddleEndsItsThreads) {
  Scene scene;
  std::promise<void> first;
  scene.recorder.on_step = [&](const report::StepDone& step) {
    if (step.step == 0) first.set_value();
  };
  scene.host->start();
  scene.add_worker("here/cpu");
  first.get_future().get();
  scene.host.reset();
  const std::size_t told = scene.recorder.steps.size();
  scene.workers.clear();
  EXPECT_EQ(scene.recorder.steps.size(), told) << "the run went on";
  const store::Audit audit = scene.audit();
  EXPECT_GE(audit.samples, told * kBatch) << "a step was told of and not written down";
  EXPECT_EQ(audit.missing, 0U);
  EXPECT_EQ(audit.duplicate, 0U);
}

}  // namespace
}  // namespace motley::runtime
