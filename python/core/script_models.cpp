#include "script_models.h"

#include <nanobind/ndarray.h>

#include <algorithm>

#include "base/shell.h"
#include "python_model.h"
#include "python_optimizer.h"
#include "runtime/inputs.h"
#include "wire/limits.h"

namespace motley::python {
namespace {

using ConstFlat = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Samples that Python alone can read.
class ScriptDataset final : public data::Dataset {
 public:
  ScriptDataset(std::uint64_t size, std::string fingerprint) : size_(size), fingerprint_(std::move(fingerprint)) {}
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& fingerprint() const override { return fingerprint_; }

 private:
  std::uint64_t size_;
  std::string fingerprint_;
};

std::shared_ptr<const data::Dataset> dataset(std::uint64_t size, const std::string& fingerprint) {
  return std::make_shared<ScriptDataset>(size, fingerprint);
}

void set_weights(Script& script, const ConstFlat& flat) {
  script.weights = chunks_of(script.layout, {flat.data(), flat.size()});
}

SharedBytes shared(const nb::bytes& bytes) {
  return SharedBytes::copy_of(std::as_bytes(std::span(static_cast<const char*>(bytes.data()), bytes.size())));
}

void set_frozen(Script& script, const std::string& name, const nb::bytes& data) { script.frozen[name] = shared(data); }

using GroupTuple = std::tuple<double, double, double, bool, double, double, double, double>;

ps::OptimizerSpec optimizer_of(const std::string& kind, const std::vector<GroupTuple>& groups) {
  ps::OptimizerSpec spec;
  spec.kind = kind == "sgd"     ? ps::OptimizerKind::sgd
              : kind == "adam"  ? ps::OptimizerKind::adam
              : kind == "adamw" ? ps::OptimizerKind::adamw
                                : ps::OptimizerKind::outside;
  for (const auto& [lr, momentum, dampening, nesterov, weight_decay, beta1, beta2, eps] : groups) {
    spec.groups.push_back({lr, momentum, dampening, nesterov, weight_decay, beta1, beta2, eps});
  }
  return spec;
}

void set_optimizer(Script& script, const std::string& kind, const std::vector<GroupTuple>& groups,
                   const nb::object& outside) {
  ps::OptimizerSpec spec = optimizer_of(kind, groups);
  if (!outside.is_none()) {
    spec.outside =
        make_outside_optimizer(outside, script.layout, "motley train --resume goes on from before that step");
  }
  script.optimizer = std::move(spec);
}

/// After set_optimizer().
void set_begun(Script& script, std::uint64_t updates, const std::vector<std::pair<std::string, ConstFlat>>& state) {
  script.optimizer.updates_before = updates;
  script.optimizer_state.clear();
  for (const auto& [name, flat] : state)
    script.optimizer_state[name] = chunks_of(script.layout, {flat.data(), flat.size()});
}

using RatesTuple = std::tuple<double, double, double, double>;

ps::ScheduleSpec schedule_of(std::uint64_t steps_per_row, std::size_t groups, const std::vector<RatesTuple>& rates) {
  auto table = std::make_shared<ps::ScheduleTable>();
  table->steps_per_row = steps_per_row;
  table->groups = groups;
  for (const auto& [lr, momentum, beta1, beta2] : rates) table->rates.push_back({lr, momentum, beta1, beta2});
  ps::ScheduleSpec spec;
  spec.kind = ps::ScheduleKind::table;
  spec.table = std::move(table);
  return spec;
}

void set_schedule(Script& script, std::uint64_t steps_per_row, std::size_t groups,
                  const std::vector<RatesTuple>& rates) {
  script.schedule = schedule_of(steps_per_row, groups, rates);
}

void set_followed(Script& script, const std::vector<std::pair<std::uint64_t, std::vector<double>>>& followed) {
  script.followed.clear();
  for (const auto& [step, lr] : followed) {
    if (lr.size() != script.optimizer.groups.size()) throw nb::value_error("expected a rate for each group");
    if (!script.followed.empty() && step <= script.followed.back().first_step)
      throw nb::value_error("expected steps in their order");
    script.followed.push_back({step, lr});
  }
}

void follow_evaluations(Script& script, const nb::callable& follower,
                        const std::vector<std::pair<std::uint64_t, std::vector<double>>>& followed) {
  script.follower = std::make_shared<Kept>(nb::object(follower));
  set_followed(script, followed);
}

void add_device(Script& script, const std::string& name, const std::string& description, std::uint64_t memory_bytes,
                unsigned threads) {
  script.devices.push_back({name, description, memory_bytes, threads});
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

std::vector<SharedBytes> chunks_of(const Layout& layout, std::span<const float> flat) {
  if (flat.size() != layout.flat_elements()) throw nb::value_error("expected layout.flat_elements elements");
  std::vector<SharedBytes> chunks;
  for (const Chunk& chunk : layout.chunks())
    chunks.push_back(SharedBytes::copy_of(std::as_bytes(flat.subspan(chunk.offset, chunk.elements))));
  return chunks;
}

std::vector<BatchChange> batch_changes(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& changes,
                                       std::uint64_t first) {
  std::vector<BatchChange> result;
  for (const auto& [step, batch] : changes) {
    if (step < first || batch == 0) throw nb::value_error("expected batches of steps to come, in their order");
    result.push_back({step, batch});
    first = step + 1;
  }
  return result;
}

SharedBytes loss_state(const nb::bytes& state) {
  if (state.size() > wire::kLossStateBytesMax) {
    throw Failure({ErrorCode::usage,
                   "what the loss takes from the script has " + std::to_string(state.size()) +
                       " bytes; expected at most " + std::to_string(wire::kLossStateBytesMax),
                   "let the loss take less: what is large can be a buffer of the model, or a part of the samples"});
  }
  return shared(state);
}

Result<runtime::ModelInputs> ScriptModels::load(const config::RunConfig& config) {
  if (config.model_kind != config::kScriptKind) {
    return Error{ErrorCode::mismatch, "this is a Python script, but the run trains '" + config.model_kind + "'",
                 "motley join TOKEN, without a script"};
  }
  if (!runtime::same_arguments(config.model_arguments, script_->arguments)) {
    return Error{ErrorCode::mismatch,
                 "the head started the script with the arguments '" + joined(config.model_arguments) +
                     "', this machine with '" + joined(script_->arguments) + "'",
                 "motley join TOKEN SCRIPT.py -- " + in_shell(config.model_arguments)};
  }
  run_of_head_ = config.model_run;
  if (config.model_run != script_->run) {
    return Error{ErrorCode::interrupted, "the head is at run " + std::to_string(config.model_run) + " of its script",
                 ""};
  }
  runtime::ModelInputs inputs{.config = &config, .train = script_->train, .script = script_->code};
  if (config.model_tested) {
    if (script_->test == nullptr) {
      return Error{ErrorCode::mismatch, "the head evaluates on a test set, but the script here has none",
                   "give motley.Run the same test= on all machines"};
    }
    inputs.test = script_->test;
  }
  return inputs;
}

Result<runtime::InitialState> ScriptModels::initial_state(const runtime::ModelInputs&) {
  runtime::InitialState state{.layout = script_->layout,
                              .weights = script_->weights,
                              .frozen = script_->frozen,
                              .acts_on_groups = script_->acts_on_groups,
                              .draws = script_->draws,
                              .optimizer = script_->optimizer,
                              .schedule = script_->schedule,
                              .optimizer_state = script_->optimizer_state,
                              .scores = script_->scores,
                              .script_files = script_->files,
                              .rates_follow_evaluations = script_->follower != nullptr,
                              .followed = script_->followed,
                              .state = script_->state,
                              .batches = script_->batches};
  return state;
}

Result<std::unique_ptr<DeviceModel>> ScriptModels::make(const runtime::ModelInputs&, const std::string& device,
                                                        unsigned threads) {
  const nb::gil_scoped_acquire gil;
  try {
    return make_python_model(script_->make->get()(device, threads), script_->layout);
  } catch (const std::exception& error) {
    return error_of(error, "the script's model cannot be put on " + device);
  }
}

// In the script's own words: what the head said of optimizers is that of the outer steps.
Result<runtime::LocalOptimizer> ScriptModels::local_optimizer(const runtime::ModelInputs&) {
  using Schedule = std::tuple<std::uint64_t, std::size_t, std::vector<RatesTuple>>;
  using Told = std::tuple<std::string, std::vector<GroupTuple>, std::optional<Schedule>>;
  const auto failed = [](const std::exception& error) {
    return error_of(error, "the script's optimizer cannot make local steps", ErrorCode::input,
                    "--set train.mode=exact");
  };
  const nb::gil_scoped_acquire gil;
  if (script_->own_optimizer == nullptr)
    return Error{
        ErrorCode::mismatch,
        "the head trains in rounds, and this script's run asks for leases (run.leases()), which rounds have none of",
        "run the head's script on both machines"};
  try {
    const auto [kind, groups, schedule] = nb::cast<Told>(script_->own_optimizer->get()());
    runtime::LocalOptimizer own{.optimizer = optimizer_of(kind, groups)};
    if (schedule) own.schedule = std::apply(schedule_of, *schedule);
    own.outside = [script = script_, failed]() -> Result<std::shared_ptr<ps::OutsideOptimizer>> {
      const nb::gil_scoped_acquire inner_gil;
      try {
        return make_outside_optimizer(script->own_outside->get()(), script->layout,
                                      "correct its step(): what this worker made of the round does not count");
      } catch (const std::exception& error) {
        return failed(error);
      }
    };
    return own;
  } catch (const std::exception& error) {
    return failed(error);
  }
}

void bind_script(nb::module_& m) {
  nb::class_<Script>(m, "Script")
      .def(
          "__init__",
          [](Script* self, const Layout& layout, bool acts_on_groups, bool draws, nb::callable make) {
            new (self) Script{.layout = layout,
                              .acts_on_groups = acts_on_groups,
                              .draws = draws,
                              .make = std::make_shared<Kept>(nb::object(std::move(make)))};
          },
          nb::arg("layout"), nb::arg("acts_on_groups"), nb::arg("draws"), nb::arg("make"))
      .def("set_train", [](Script& s, std::uint64_t size, const std::string& print) { s.train = dataset(size, print); })
      .def("set_test", [](Script& s, std::uint64_t size, const std::string& print) { s.test = dataset(size, print); })
      .def("set_files", [](Script& s, const nb::bytes& packed) { s.files = shared(packed); })
      .def("set_run", [](Script& s, std::uint64_t number) { s.run = number; })
      .def("set_arguments", [](Script& s, const std::vector<std::string>& words) { s.arguments = words; })
      .def(
          "set_state", [](Script& s, const nb::bytes& state) { s.state = loss_state(state); }, nb::arg("state"))
      .def(
          "set_batches",
          [](Script& s, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& changes) {
            s.batches = batch_changes(changes, 1);
          },
          nb::arg("changes"))
      .def(
          "set_code", [](Script& s, std::string code) { s.code = std::move(code); }, nb::arg("code"))
      .def("set_scores", [](Script& s, const std::vector<std::string>& names) { s.scores = names; })
      .def("set_weights", &set_weights)
      .def("set_frozen", &set_frozen)
      .def("set_optimizer", &set_optimizer, nb::arg("kind"), nb::arg("groups"), nb::arg("outside").none())
      .def("set_begun", &set_begun, nb::arg("updates"), nb::arg("state"))
      .def("follow_evaluations", &follow_evaluations, nb::arg("follower"), nb::arg("followed"))
      .def("set_followed", &set_followed, nb::arg("followed"))
      .def("set_schedule", &set_schedule)
      .def(
          "set_own",
          [](Script& s, nb::callable optimizer, nb::callable outside) {
            s.own_optimizer = std::make_shared<Kept>(nb::object(std::move(optimizer)));
            s.own_outside = std::make_shared<Kept>(nb::object(std::move(outside)));
          },
          nb::arg("optimizer"), nb::arg("outside"))
      .def("add_device", &add_device);
}

}  // namespace motley::python
