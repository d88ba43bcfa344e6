#pragma once
// A run as it might be told: every kind of event, and values that are hard to write. What sinks make of it lies in
// data/.

#include <limits>
#include <vector>

#include "report/event.h"

namespace motley::report::test {

inline std::vector<Event> of_the_start() {
  return {Note{"run 2 of the script, in runs/a"},
          RunStarted{.run = "00000000000000ff",
                     .name = "fashion-cnn",
                     .directory = "runs/a",
                     .parameters = 421642,
                     .global_batch = 256,
                     .seed = 18446744073709551615U,
                     .steps_per_epoch = 235,
                     .samples = 60000,
                     .steps = 6,
                     .first_step = 3,
                     .join = "mtl1-abcdef",
                     .pairing_code = "012345",
                     .join_with = "train.py --lr 0.1",
                     .addresses = {"192.168.1.7", "10.0.0.2"},
                     .verbose = true,
                     .plaintext = true},
          CodeShown{"123456", {"192.168.1.7", "10.0.0.2"}, 1764211000, "is used", true},
          WorkerChanged{"desktop/cuda:0", "desktop", "cuda:0", "NVIDIA RTX 3060, 12 GiB", "joined", "it has the model"},
          WorkerChanged{"laptop/cpu", "laptop", "cpu", "", "lost", "nothing heard for 1.8 s"},
          WorkerChanged{"a stranger", "", "", "", "refused", "wrong-token: expected \"proof\", found \xff\t(3 so far)"},
          Waiting{"waiting for laptop/cpu (87 of 128 samples)"}};
}

inline std::vector<Event> of_plans() {
  PlanMade plan{.global_batch = 256,
                .step_s = 0.1,
                .samples_per_s = 2560,
                .fastest_alone = "desktop/cuda:0",
                .fastest_alone_samples_per_s = 2000.5,
                .shares = {{"desktop/cuda:0", 200, 2000.5, 0.08, 0.01, "int8", 6.25e6, 0},
                           {"laptop/cpu", 56, 600, 0.09, 0, "fp32", 0, 1.2e7},
                           {"old/cpu", 0, 10, 0, 0, "fp32", 0.4, 0.6}},
                .recommendation = "use both: 1.28 times the fastest alone",
                .limit = "computing on desktop/cuda:0",
                .noise = {100, 812.5, 278.6},
                .modes = {{"exact", 0, 2560, 0.88, 1.5e10, 0, "the mathematics of one machine"},
                          {"rounds", 30, 2600.25, 0.97, 5.4e8, {}, "not known"}}};
  PlanMade nothing_known{.global_batch = 1,
                         .step_s = std::numeric_limits<double>::infinity(),
                         .samples_per_s = 0,
                         .recommendation = "measure longer"};
  return {plan, nothing_known};
}

inline std::vector<Event> of_steps() {
  StepDone first{.step = 3, .samples = 256, .loss = 2.3025850929940459, .seconds = 0.5, .samples_per_s = 512};
  first.learning_rate = 0.1;
  first.global_batch = 256;
  StepDone second = first;
  second.step = 4;
  second.epoch = 1;
  second.loss = std::numeric_limits<double>::quiet_NaN();
  second.noise = {2, 812.4567, 279};
  second.steps = 7;
  second.workers = {{"desktop/cuda:0", 200, 0.4, 0.1, 0.6, 1000, 2000},
                    {"laptop/cpu", 56, 0.45, std::numeric_limits<double>::infinity(), 0, 1688849860263936U, 0}};
  StepDone last = second;
  last.step = 6;
  last.loss = 1e-7;
  last.update_s = 0.05;
  const AdviceGiven advice{.set = "train.clip_norm_of=previous",
                           .saves_s = 0.04,
                           .step_s = 0.5,
                           .sentence = "Clipping makes all workers wait."};
  return {first, second, last, advice,
          ModeChosen{"exact", "exact steps: 1.90 times as fast as desk/cpu alone", 412.5, 380.25}};
}

inline std::vector<Event> of_the_end() {
  EvalDone classified{.step = 7, .epoch = 1, .samples = 10000, .loss = 0.31, .accuracy = 0.8925};
  classified.scores = {{"accuracy", 0.8925}, {"top \"5\"", std::numeric_limits<double>::quiet_NaN()}};
  EvalDone fitted{.step = 7, .epoch = 1, .samples = 10000, .loss = 0.25, .has_accuracy = false, .exact = false};
  Done done{
      .steps = 7, .samples = 1024, .seconds = 2.5, .samples_per_s = 409.6, .loss = 0.123456789, .accuracy = 0.8925};
  done.has_accuracy = true;
  done.predicted_samples_per_s = 420;
  done.noise = {100, 812.5, 278.6};
  done.verified = 4;
  done.checkpoint = "runs/a/checkpoints/step-000000007";
  Done short_one{.steps = 1, .checkpoint = "runs/b/checkpoints/step-000000001", .local_steps = 30, .cosine = 0.5};
  return {classified,
          fitted,
          CheckpointWritten{0, "runs/a/checkpoints/step-000000000"},
          CheckpointWritten{7, "runs/a/checkpoints/step-000000007"},
          Failure{{ErrorCode::disk_full, "no room in runs/a for \"step\"\n", "free 3 GB"}},
          Failure{{ErrorCode::interrupted, "interrupted after step 7", ""}},
          Waiting{},
          done,
          short_one};
}

/// All of it.
inline std::vector<Event> some_events() {
  std::vector<Event> all;
  for (auto part : {of_the_start(), of_plans(), of_steps(), of_the_end()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace motley::report::test
