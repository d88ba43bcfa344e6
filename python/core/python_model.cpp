#include "python_model.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "base/fault_words.h"
#include "machine/error_words.h"
#include "machine/process_memory.h"
#include "python_device_optimizer.h"
#include "python_server.h"
#include "wire/limits.h"

namespace motley::python {
namespace {

using Arena = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// [first, last) of the flat vector.
using Elements = std::pair<std::uint64_t, std::uint64_t>;

void extend(std::vector<Elements>& ranges, Elements next) {
  if (!ranges.empty() && ranges.back().second == next.first)
    ranges.back().second = next.second;
  else
    ranges.push_back(next);
}

/// While it lives, Python takes this thread for one and the same, so that what a script keeps for each thread stays. By
/// that thread alone, without the GIL.
class KnownThread {
 public:
  KnownThread() : state_(PyGILState_Ensure()), saved_(PyEval_SaveThread()) {}
  ~KnownThread() {
    PyEval_RestoreThread(saved_);
    PyGILState_Release(state_);
  }
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;

 private:
  PyGILState_STATE state_;
  PyThreadState* saved_;
};

/// What Python said instead of an answer: (code, message, hint).
std::optional<Error> failure_in(const nb::object& answer) {
  if (!nb::isinstance<nb::tuple>(answer)) return std::nullopt;
  const nb::tuple words = nb::cast<nb::tuple>(answer);
  if (words.size() != 3 || !nb::isinstance<nb::str>(words[0])) return std::nullopt;
  return Error{code_of(nb::cast<std::string>(words[0])), nb::cast<std::string>(words[1]),
               nb::cast<std::string>(words[2])};
}

Flow flow_of(const std::string& name) {
  if (name == "in_step") return Flow::in_step;
  if (name == "behind") return Flow::behind;
  if (name == "overlapped") return Flow::overlapped;
  throw nb::value_error("flow: expected in_step, behind or overlapped");
}

class PythonModel;

/// What Python sees of a task while it is open. Python's own: it may keep it longer.
class TaskView {
 public:
  TaskView(PythonModel& owner, const Task& task) : owner_(&owner), task_(&task) {}
  void close() { owner_ = nullptr; }

  [[nodiscard]] const Task& task() const {
    check();
    return *task_;
  }
  [[nodiscard]] std::vector<std::uint64_t> indices(std::uint64_t first, std::uint64_t count) const {
    check();
    if (first > task_->indices.size() || count > task_->indices.size() - first) throw nb::index_error();
    const auto part = task_->indices.subspan(first, count);
    return {part.begin(), part.end()};
  }
  std::vector<Elements> bring(std::uint64_t first, std::uint64_t last);
  [[nodiscard]] std::vector<Elements> missing() const;
  void final(std::size_t placement);

 private:
  void check() const {
    if (owner_ == nullptr) throw std::runtime_error("this task is over");
  }
  PythonModel* owner_;
  const Task* task_;
};

class PythonModel final : public DeviceModel {
 public:
  PythonModel(nb::object object, Layout layout)
      : layout_(std::move(layout)),
        weights_(nb::cast<Arena>(object.attr("weights"))),
        gradients_(nb::cast<Arena>(object.attr("gradients"))),
        weight_data_(weights_.data()),
        gradient_data_(gradients_.data()),
        flow_(flow_of(nb::cast<std::string>(object.attr("flow")))),
        group_(nb::cast<std::uint32_t>(object.attr("group"))) {
    if (weights_.size() != layout_.flat_elements() || gradients_.size() != layout_.flat_elements()) {
      throw std::runtime_error("weights and gradients must have layout.flat_elements elements");
    }
    capabilities_.device = nb::cast<std::string>(object.attr("device"));
    capabilities_.description = nb::cast<std::string>(object.attr("description"));
    capabilities_.micro_batch = nb::cast<std::uint32_t>(object.attr("micro_batch"));
    if (nb::hasattr(object, "care") && !object.attr("care").is_none()) {
      const auto care = nb::cast<std::tuple<std::uint32_t, double, bool>>(object.attr("care"));
      std::tie(care_.pass_sizes, care_.pass_seconds, care_.repeats) = care;
      words_.emplace([](std::string_view line) { return fault_in(line).has_value(); });
    }
    if (nb::hasattr(object, "numbers")) capabilities_.numbers = nb::cast<std::uint64_t>(object.attr("numbers"));
    // What an optimizer on such a device left out could not be computed again.
    if (!care_.any() && nb::hasattr(object, "device_optimizer") && !object.attr("device_optimizer").is_none()) {
      device_optimizer_.emplace(object.attr("device_optimizer"), layout_, std::span(weight_data_, weights_.size()),
                                std::span(gradients_.data(), gradients_.size()));
    }
    if (nb::hasattr(object, "server") && !object.attr("server").is_none())
      server_ = std::make_shared<PythonServer>(object.attr("server"), layout_);
    python_ = std::make_unique<Kept>(std::move(object));
  }
  ~PythonModel() override {
    const nb::gil_scoped_acquire gil;
    weights_ = {};
    gradients_ = {};
    view_.reset();
    device_optimizer_.reset();
    server_.reset();
    python_.reset();
  }
  PythonModel(const PythonModel&) = delete;
  PythonModel& operator=(const PythonModel&) = delete;

  [[nodiscard]] const Layout& layout() const override { return layout_; }
  [[nodiscard]] Capabilities capabilities() const override { return capabilities_; }
  MemoryUse memory(std::uint64_t for_others) override {
    const nb::gil_scoped_acquire gil;
    try {
      using Use = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
      const auto [used, peak, budget, scratch] = nb::cast<Use>(python_->get().attr("memory")(for_others));
      return {used, peak, budget, scratch};
    } catch (const std::exception&) {
      return {};  // a device that does not tell is taken as it is
    }
  }
  DeviceOptimizer* device_optimizer() override { return device_optimizer_ ? &*device_optimizer_ : nullptr; }
  std::shared_ptr<DeviceServer> server() override { return server_; }
  [[nodiscard]] Care care() const override { return care_; }
  std::optional<Fault> fault() override {
    if (!care_.any()) return std::nullopt;
    std::optional<Fault> found;
    const Status asked = call("fault", [&found](const nb::object& answer) {
      if (answer.is_none()) return;
      const auto text = nb::cast<std::string>(answer);
      found = fault_in(text);
      if (!found) found = Fault{Fault::Kind::stale, text};
    });
    if (!asked) return Fault{Fault::Kind::stale, asked.error().message};
    // What the driver says of its own, it has said by the time that the device was waited for.
    if (const std::optional<std::string> words = words_->take()) return fault_in(*words);
    return found;
  }
  void empty_caches() override {
    if (care_.any()) static_cast<void>(call("empty_caches"));
  }
  [[nodiscard]] Flow flow() const override { return flow_; }
  [[nodiscard]] std::uint32_t group(PassKind kind) const override { return kind == PassKind::evaluate ? 0 : group_; }
  [[nodiscard]] std::uint32_t at_once(const Task&) const override { return at_once_; }
  [[nodiscard]] bool starts_early(const Task&) const override { return early_; }

  Status open(const Task& task, Arriving& weights) override {
    task_ = &task;
    arriving_ = task.resident ? nullptr : &weights;
    came_.clear();
    if (task.micro_batch > tried_ && capabilities_.device == "cpu") limit_.emplace();
    thread_.emplace();
    const nb::gil_scoped_acquire gil;
    view_ = nb::cast(TaskView(*this, task));
    return call(
        "open",
        [this](const nb::object& found) {
          std::tie(at_once_, early_) = nb::cast<std::tuple<std::uint32_t, bool>>(found);
        },
        view_);
  }
  Status read(const MicroBatch& probable) override {
    return call_with("read", probable, [this](const nb::object& most) { at_once_ = nb::cast<std::uint32_t>(most); });
  }
  Status load(ChunkId first, std::span<const std::span<const float>> chunks) override {
    const std::uint64_t begin = layout_.chunks()[first].offset;
    std::uint64_t end = begin;
    for (const std::span<const float> values : chunks) {
      std::memcpy(weight_data_ + end, values.data(), values.size_bytes());
      end += values.size();
    }
    extend(came_, {begin, end});
    return {};
  }
  Status start() override { return call("start", {}, std::exchange(came_, {})); }
  Result<Forward> forward(const MicroBatch& samples) override {
    bool computed = false;
    const Status done = call_with("forward", samples, [&](const nb::object& found) {
      std::tie(computed, at_once_) = nb::cast<std::tuple<bool, std::uint32_t>>(found);
    });
    if (!done) return done.error();
    return computed ? Forward::computed : Forward::refused;
  }
  Status backward(Finals* finals) override {
    finals_ = finals;
    return call("backward", {}, finals != nullptr);
  }
  Result<Sums> sums() override {
    Sums sums;
    const Status done = call("sums", [&sums](const nb::object& found) {
      using Found = std::tuple<double, double, std::vector<double>>;
      std::tie(sums.weight, sums.loss_sum, sums.scores) = nb::cast<Found>(found);
      sums.scores.resize(std::min(sums.scores.size(), wire::kScoresMax));
    });
    if (!done) return done.error();
    return sums;
  }
  Status finish(std::uint64_t count) override {
    if (count >= task_->micro_batch) tried_ = std::max(tried_, task_->micro_batch);
    Status done = call("finish", {}, count);
    finals_ = nullptr;
    return done;
  }
  Result<std::vector<SharedBytes>> keep() override { return server_->keep(); }
  [[nodiscard]] std::span<const float> gradient(ChunkId chunk) const override {
    const Chunk& place = layout_.chunks()[chunk];
    return {gradient_data_ + place.offset, place.elements};
  }
  void close() override {
    {
      const nb::gil_scoped_acquire gil;
      static_cast<void>(call("close"));
      finals_ = nullptr;
      nb::cast<TaskView&>(view_).close();
      view_.reset();
    }
    thread_.reset();
    limit_.reset();
    arriving_ = nullptr;
  }

  // For TaskView.
  std::vector<Elements> bring(std::uint64_t first, std::uint64_t last) {
    if (arriving_ != nullptr) static_cast<void>(arriving_->bring(first, last));  // missing() tells
    return std::exchange(came_, {});
  }
  [[nodiscard]] std::vector<Elements> missing() const {
    std::vector<Elements> found;
    const std::span<const Chunk> chunks = layout_.chunks();
    for (ChunkId chunk = 0; arriving_ != nullptr && chunk < chunks.size(); ++chunk) {
      if (!arriving_->loaded(chunk))
        extend(found, {chunks[chunk].offset, chunks[chunk].offset + chunks[chunk].elements});
    }
    return found;
  }
  void final(std::size_t placement) {
    if (finals_ == nullptr || placement >= layout_.placements().size()) throw nb::index_error();
    const nb::gil_scoped_release no_gil;
    finals_->placement_final(placement);
  }

 private:
  using Take = std::function<void(const nb::object& answer)>;
  template <class... Arguments>
  Status call(const char* name, const Take& take = {}, Arguments&&... arguments) {
    const nb::gil_scoped_acquire gil;
    try {
      const nb::object answer = python_->get().attr(name)(std::forward<Arguments>(arguments)...);
      if (std::optional<Error> failure = failure_in(answer)) return *std::move(failure);
      if (take) take(answer);
      return {};
    } catch (const std::exception& error) {
      return error_of(error, "the script's computation");
    }
  }

  Status call_with(const char* name, const MicroBatch& samples, const Take& take) {
    const std::size_t size = samples.indices.size();
    if (samples.repeats > 1) return call(name, take, samples.at, size, samples.wanted, samples.repeats);
    return call(name, take, samples.at, size, samples.wanted);
  }

  std::unique_ptr<Kept> python_;
  Layout layout_;
  Arena weights_, gradients_;
  float* weight_data_;
  const float* gradient_data_;
  Capabilities capabilities_;
  Care care_;
  std::optional<machine::ErrorWords> words_;  // of the driver's
  Flow flow_;
  std::uint32_t group_;
  std::optional<PythonDeviceOptimizer> device_optimizer_;
  std::shared_ptr<PythonServer> server_;
  std::uint32_t tried_ = 0;  // the largest micro-batch for which there was memory
  // Of the task.
  const Task* task_ = nullptr;
  Arriving* arriving_ = nullptr;
  Finals* finals_ = nullptr;
  nb::object view_;
  std::vector<Elements> came_;  // and Python was not told
  std::uint32_t at_once_ = 1;
  bool early_ = false;
  std::optional<machine::ProcessMemoryLimit> limit_;
  std::optional<KnownThread> thread_;
};

std::vector<Elements> TaskView::bring(std::uint64_t first, std::uint64_t last) {
  check();
  const nb::gil_scoped_release no_gil;
  return owner_->bring(first, last);
}

std::vector<Elements> TaskView::missing() const {
  check();
  return owner_->missing();
}

void TaskView::final(std::size_t placement) {
  check();
  owner_->final(placement);
}

}  // namespace

std::unique_ptr<DeviceModel> make_python_model(nb::object object, Layout layout) {
  return std::make_unique<PythonModel>(std::move(object), std::move(layout));
}

void bind_task(nb::module_& m) {
  nb::class_<TaskView>(m, "Task")
      .def_prop_ro("kind", [](const TaskView& v) { return v.task().kind == PassKind::evaluate ? "evaluate" : "train"; })
      .def_prop_ro("contributes", [](const TaskView& view) { return gives_gradient(view.task().kind); })
      .def_prop_ro("probes", [](const TaskView& view) { return view.task().kind == PassKind::probe; })
      .def_prop_ro("version", [](const TaskView& view) { return view.task().version; })
      .def_prop_ro("first", [](const TaskView& view) { return view.task().first; })
      .def_prop_ro("epoch", [](const TaskView& view) { return view.task().epoch; })
      .def_prop_ro("order_first", [](const TaskView& view) { return view.task().order_first; })
      .def_prop_ro("count", [](const TaskView& view) { return view.task().indices.size(); })
      .def_prop_ro("micro_batch", [](const TaskView& view) { return view.task().micro_batch; })
      .def_prop_ro("resident", [](const TaskView& view) { return view.task().resident; })
      .def_prop_ro("kept", [](const TaskView& view) { return view.task().kept; })
      .def_prop_ro("seed", [](const TaskView& view) { return view.task().seed; })
      .def_prop_ro("state_number", [](const TaskView& view) { return view.task().state.number; })
      .def_prop_ro("state",
                   [](const TaskView& view) {
                     const auto bytes = view.task().state.bytes.bytes();
                     return nb::bytes(bytes.data(), bytes.size());
                   })
      .def_prop_ro("from_end", [](const TaskView& view) { return view.task().from_end; })
      .def("indices", &TaskView::indices, nb::arg("first"), nb::arg("count"))
      .def("bring", &TaskView::bring, nb::arg("first"), nb::arg("last"))
      .def("missing", &TaskView::missing)
      .def("final", &TaskView::final, nb::arg("placement"));
}

}  // namespace motley::python
