#pragma once
// Everything that a coordinator says.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/head/coordinator.h"

namespace motley::engine {

struct RecordingOutput : CoordinatorOutput {
  struct Sent {
    wire::Frame frame;
    Lane lane;
  };
  std::map<SessionId, std::vector<Sent>> sent;
  std::map<SessionId, wire::Bye> closed;
  std::vector<WorkerChange> changes;
  std::vector<std::string> warnings;
  std::vector<Planned> plans;
  std::vector<StepClosed> steps;
  std::vector<Evaluated> evaluations;
  int times_finished = 0;
  std::optional<Error> error;
  std::vector<double> rates;  // after each evaluation
  bool delegates = false;
  std::optional<DelegatedSteps> delegated;
  std::shared_ptr<DeviceServer> device;  // of the first session

  std::map<SessionId, std::size_t> queued;  // bytes
  [[nodiscard]] std::size_t queued_bytes(SessionId session) const override {
    return queued.contains(session) ? queued.at(session) : 0;
  }
  void send(SessionId session, wire::Frame frame, Lane lane) override { sent[session].push_back({frame, lane}); }
  void close(SessionId session, const wire::Bye& bye) override { closed[session] = bye; }
  void worker_changed(const WorkerChange& change) override { changes.push_back(change); }
  void warning(std::string text) override { warnings.push_back(std::move(text)); }
  void planned(const Planned& plan) override { plans.push_back(plan); }
  void step_closed(const StepClosed& step) override { steps.push_back(step); }
  void evaluated(const Evaluated& evaluation) override { evaluations.push_back(evaluation); }
  std::vector<double> rates_after(const Evaluated&) override { return rates; }
  bool delegate(SessionId, const DelegatedSteps& order) override {
    if (delegates) delegated = order;
    return delegates;
  }
  std::shared_ptr<DeviceServer> device_server(SessionId session) override { return session == 1 ? device : nullptr; }
  std::vector<std::uint64_t> pauses;  // versions
  void paused(std::uint64_t version, bool) override { pauses.push_back(version); }
  void finished() override { ++times_finished; }
  void failed(Error why) override { error = std::move(why); }
};

}  // namespace motley::engine
