#include "report/json_sink.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/event_writer.h"

namespace motley::report {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json known(double value) { return value > 0 ? number(value) : Json(nullptr); }
Json whole(double value) {
  return value > 0 && std::isfinite(value) ? Json(static_cast<std::uint64_t>(std::llround(std::max(1.0, value))))
                                           : Json(nullptr);
}

class JsonSink final : public Sink {
 public:
  explicit JsonSink(std::shared_ptr<Writer> writer) : out_(std::move(writer), gap) {}

  void take(const Event& event) override {
    std::visit([&](const auto& e) { out_.write(event, json(e)); }, event);
  }

 private:
  static std::string json(const RunStarted& e) {
    return line({{"event", "run"},
                 {"run", e.run},
                 {"parameters", e.parameters},
                 {"global_batch", e.global_batch},
                 {"seed", e.seed},
                 {"join", e.join},
                 {"code", e.pairing_code},
                 {"addresses", e.addresses},
                 {"directory", e.directory},
                 {"steps", e.steps},
                 {"steps_per_epoch", e.steps_per_epoch},
                 {"samples", e.samples},
                 {"first_step", e.first_step},
                 {"plaintext", e.plaintext},
                 {"tested", e.tested}});
  }
  static std::string json(const CodeShown& e) {
    return line({{"event", "pairing"},
                 {"code", e.code},
                 {"addresses", e.addresses},
                 {"until_unix_s", e.until_unix_s},
                 {"reason", e.reason}});
  }
  static std::string json(const WorkerChanged& e) {
    const bool parked = e.change == "parked";  // programs know that as excluded
    return line({{"event", "worker"},
                 {"worker", e.worker},
                 {"machine", e.machine},
                 {"device", e.device},
                 {"change", parked ? "excluded" : e.change},
                 {"parked", parked},
                 {"reason", e.reason},
                 {"description", e.description}});
  }
  static std::string json(const StepDone& e) {
    Json workers = Json::array();
    for (const WorkerPart& part : e.workers) {
      workers.push_back({{"worker", part.worker},
                         {"samples", part.samples},
                         {"compute_s", number(part.compute_s)},
                         {"wait_s", number(part.wait_s)},
                         {"finish_s", number(part.finish_s)},
                         {"sent_bytes", part.sent_bytes},
                         {"received_bytes", part.received_bytes}});
      if (part.ahead > 0) workers.back()["ahead"] = part.ahead;
    }
    return line({{"event", "step"},
                 {"step", e.step},
                 {"epoch", e.epoch},
                 {"loss", number(e.loss)},
                 {"samples", e.samples},
                 {"seconds", number(e.seconds)},
                 {"samples_per_s", number(e.samples_per_s)},
                 {"learning_rate", number(e.learning_rate)},
                 {"noise_scale", known(e.noise.scale)},
                 {"global_batch", e.global_batch},
                 {"steps", e.steps},
                 {"update_s", number(e.update_s)},
                 {"workers", std::move(workers)}});
  }
  static std::string json(const AdviceGiven& e) {
    return line({{"event", "advice"},
                 {"set", e.set},
                 {"saves_s", number(e.saves_s)},
                 {"step_s", number(e.step_s)},
                 {"sentence", e.sentence}});
  }
  static std::string json(const ModeChosen& e) {
    return line({{"event", "mode"},
                 {"mode", e.mode},
                 {"sentence", e.sentence},
                 {"exact_samples_per_s", known(e.exact_samples_per_s)},
                 {"rounds_samples_per_s", known(e.rounds_samples_per_s)},
                 {"rounds_loss_percent", e.rounds_loss_percent ? number(*e.rounds_loss_percent) : Json(nullptr)}});
  }
  static std::string json(const PlanMade& e) {
    Json shares = Json::object();
    Json outlook = Json::array();
    for (const PlanMade::Share& share : e.shares) {
      shares[share.worker] = share.samples;
      outlook.push_back({{"worker", share.worker},
                         {"samples", share.samples},
                         {"alone_samples_per_s", number(share.alone_samples_per_s)},
                         {"compute_s", number(share.compute_s)},
                         {"exposed_s", number(share.exposed_s)},
                         {"codec", share.codec}});
      if (share.up_bytes_per_s > 0) outlook.back()["up_bytes_per_s"] = whole(share.up_bytes_per_s);
      if (share.down_bytes_per_s > 0) outlook.back()["down_bytes_per_s"] = whole(share.down_bytes_per_s);
    }
    Json plan{
        {"event", "plan"},
        {"global_batch", e.global_batch},
        {"predicted", {{"samples_per_s", number(e.samples_per_s)}, {"step_s", number(e.step_s)}}},
        {"fastest_alone", {{"worker", e.fastest_alone}, {"samples_per_s", number(e.fastest_alone_samples_per_s)}}},
        {"shares", std::move(shares)},
        {"outlook", std::move(outlook)},
        {"recommendation", e.recommendation},
        {"limit", e.limit},
        {"noise_scale", known(e.noise.scale)},
        {"useful_global_batch", whole(e.noise.useful_batch)}};
    for (const ModeOutlook& mode : e.modes) plan["modes"].push_back(of_mode(mode));
    return line(plan);
  }
  static Json of_mode(const ModeOutlook& e) {
    return {{"mode", e.mode},
            {"local_steps", e.local_steps > 0 ? Json(e.local_steps) : Json(nullptr)},
            {"samples_per_s", number(e.samples_per_s)},
            {"computing", number(e.computing)},
            {"bytes_a_day", e.bytes_a_day > 0 ? whole(e.bytes_a_day) : Json(0U)},
            {"loss_percent", e.loss_percent ? number(*e.loss_percent) : Json(nullptr)},
            {"price", e.price}};
  }
  static std::string json(const EvalDone& e) {
    Json event{{"event", "eval"},
               {"step", e.step},
               {"epoch", e.epoch},
               {"loss", number(e.loss)},
               {"accuracy", e.has_accuracy ? number(e.accuracy) : Json(nullptr)},
               {"samples", e.samples},
               {"weights", e.exact ? "exact" : "held"}};
    for (const auto& [name, mean] : e.scores) event["scores"][name] = number(mean);
    return line(event);
  }
  static std::string json(const CheckpointWritten& e) {
    return line({{"event", "checkpoint"}, {"step", e.step}, {"path", e.path}});
  }
  static std::string json(const Done& e) {
    Json done{{"event", "done"},
              {"steps", e.steps},
              {"samples", e.samples},
              {"seconds", number(e.seconds)},
              {"samples_per_s", number(e.samples_per_s)},
              {"loss", number(e.loss)},
              {"accuracy", e.has_accuracy ? number(e.accuracy) : Json(nullptr)},
              {"predicted_samples_per_s", known(e.predicted_samples_per_s)},
              {"noise_scale", known(e.noise.scale)},
              {"useful_global_batch", whole(e.noise.useful_batch)},
              {"verified_samples", e.verified},
              {"checkpoint", e.checkpoint},
              {"mode", e.local_steps > 0 ? "rounds" : "exact"},
              {"local_steps", e.local_steps > 0 ? Json(e.local_steps) : Json(nullptr)},
              {"cosine", e.cosine ? number(*e.cosine) : Json(nullptr)}};
    return line(done);
  }
  static std::string json(const Failure& e) {
    const Error& error = e.error;
    return line({{"event", "error"}, {"code", to_word(error.code)}, {"message", error.message}, {"try", error.hint}});
  }
  // For people and scripts.
  static std::string json(const EvalPointReached&) { return {}; }
  static std::string json(const Paused&) { return {}; }
  static std::string json(const Note&) { return {}; }
  static std::string json(const Waiting&) { return {}; }

  static std::string gap(std::uint64_t dropped) { return line({{"event", "dropped"}, {"events", dropped}}); }
  static std::string line(const Json& object) {
    return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  EventWriter out_;
};

}  // namespace

std::unique_ptr<Sink> make_json_sink(std::shared_ptr<Writer> writer) {
  return std::make_unique<JsonSink>(std::move(writer));
}

}  // namespace motley::report
