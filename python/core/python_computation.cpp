#include "python_computation.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "machine/process_memory.h"
#include "python_residence.h"
#include "tensor/chunk_publisher.h"
#include "wire/limits.h"

namespace motley::python {
namespace {

using Arena = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class PythonComputation;

/// [first, last) of the flat vector.
using Elements = std::pair<std::uint64_t, std::uint64_t>;

// What Python sees of a task while it runs.
class TaskView {
 public:
  TaskView(PythonComputation& owner, const Task& task, Weights& weights, Sink& sink, const Stop& stop);
  /// After run() nothing of it is there any more.
  void close() { owner_ = nullptr; }

  std::string kind() const { return task().kind == PassKind::evaluate ? "evaluate" : "train"; }
  bool contributes() const { return task().kind == PassKind::train; }
  const Task& task() const {
    check();
    return task_;
  }
  std::vector<std::uint64_t> indices(std::uint64_t first, std::uint64_t count) const {
    check();
    if (first > task_.indices.size() || count > task_.indices.size() - first) throw nb::index_error();
    const auto part = task_.indices.subspan(first, count);
    return {part.begin(), part.end()};
  }
  std::uint64_t limit() const {
    check();
    const nb::gil_scoped_release no_gil;
    return std::min<std::uint64_t>(stop_.limit(), task_.indices.size());
  }
  bool claim(std::uint64_t count) const {
    check();
    const nb::gil_scoped_release no_gil;
    return stop_.claim(count);
  }
  std::uint64_t at(std::uint64_t done, std::uint64_t count) const {
    check();
    if (done > task_.indices.size() || count > task_.indices.size() - done) throw nb::index_error();
    return task_.at(done, count);
  }
  std::vector<Elements> load(std::uint64_t first, std::optional<std::uint64_t> last);
  std::vector<Elements> missing() const;
  void begin(std::uint64_t count, double weight, double loss_sum);
  void progress(std::uint64_t done) {
    check();
    sink_.progress(done);
  }
  void final(std::size_t placement);
  void finish();

 private:
  void check() const {
    if (owner_ == nullptr) throw std::runtime_error("this task is over");
  }
  PythonComputation* owner_;
  const Task& task_;
  Weights& weights_;
  Sink& sink_;
  const Stop& stop_;
  std::vector<bool> loaded_;  // by chunk
  bool begun_ = false;
};

void extend(std::vector<Elements>& ranges, Elements next) {
  if (!ranges.empty() && ranges.back().second == next.first)
    ranges.back().second = next.second;
  else
    ranges.push_back(next);
}

class PythonComputation final : public Computation {
 public:
  PythonComputation(nb::object computation, Layout layout)
      : layout_(std::move(layout)),
        weights_(nb::cast<Arena>(computation.attr("weights"))),
        gradients_(nb::cast<Arena>(computation.attr("gradients"))),
        publisher_(layout_,
                   [this](ChunkId chunk) {
                     const Chunk& place = layout_.chunks()[chunk];
                     return std::span<const float>(gradient_data_ + place.offset, place.elements);
                   }),
        weight_data_(weights_.data()),
        gradient_data_(gradients_.data()) {
    if (weights_.size() != layout_.flat_elements() || gradients_.size() != layout_.flat_elements()) {
      throw std::runtime_error("weights and gradients must have layout.flat_elements elements");
    }
    capabilities_.device = nb::cast<std::string>(computation.attr("device"));
    capabilities_.description = nb::cast<std::string>(computation.attr("description"));
    capabilities_.micro_batch = nb::cast<std::uint32_t>(computation.attr("micro_batch"));
    const bool resident = nb::hasattr(computation, "resident") && nb::cast<bool>(computation.attr("resident"));
    python_ = std::make_unique<Kept>(std::move(computation));
    if (resident) {
      residence_.emplace(*python_, layout_, std::span(weight_data_, weights_.size()),
                         std::span(gradients_.data(), gradients_.size()));
    }
  }
  ~PythonComputation() override {
    const nb::gil_scoped_acquire gil;
    weights_ = {};
    gradients_ = {};
    python_.reset();
  }
  PythonComputation(const PythonComputation&) = delete;
  PythonComputation& operator=(const PythonComputation&) = delete;

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

  ps::Residence* residence() override { return residence_ ? &*residence_ : nullptr; }

  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) override {
    std::optional<machine::ProcessMemoryLimit> limit;
    const bool untried = task.micro_batch > tried_ && capabilities_.device == "cpu";
    if (untried) limit.emplace();
    const nb::gil_scoped_acquire gil;
    TaskView view(*this, task, weights, sink, stop);
    const nb::object seen = nb::cast(&view, nb::rv_policy::reference);
    try {
      const nb::tuple found = nb::cast<nb::tuple>(python_->get().attr("run")(seen));
      view.close();
      if (found.size() == 2) {
        const bool memory = nb::cast<std::string>(found[0]) == "memory";
        return Error{memory ? ErrorCode::memory : ErrorCode::internal, nb::cast<std::string>(found[1]), ""};
      }
      Outcome outcome;
      outcome.count = nb::cast<std::uint64_t>(found[0]);
      outcome.weight = nb::cast<double>(found[1]);
      outcome.loss_sum = nb::cast<double>(found[2]);
      outcome.micro_batch = task.micro_batch;
      if (task.kind != PassKind::evaluate && outcome.count >= task.micro_batch) {
        tried_ = std::max(tried_, task.micro_batch);
      }
      outcome.scores = nb::cast<std::vector<double>>(found[3]);
      outcome.scores.resize(std::min(outcome.scores.size(), wire::kScoresMax));
      return outcome;
    } catch (const std::exception& error) {
      view.close();
      return Error{ErrorCode::internal, error.what(), ""};
    }
  }

  /// Copies a chunk, and waits for it. False: the task is abandoned.
  bool load(Weights& weights, ChunkId chunk) {
    const Chunk& place = layout_.chunks()[chunk];
    const std::span<const float> values = weights.get(chunk);
    if (values.empty()) return false;
    MOTLEY_ASSERT(values.size() == place.elements);
    std::memcpy(weight_data_ + place.offset, values.data(), values.size_bytes());
    return true;
  }
  ChunkPublisher& publisher() { return publisher_; }

 private:
  std::unique_ptr<Kept> python_;
  Layout layout_;
  Arena weights_, gradients_;
  ChunkPublisher publisher_;
  float* weight_data_;
  const float* gradient_data_;
  Capabilities capabilities_;
  std::optional<PythonResidence> residence_;
  std::uint32_t tried_ = 0;  // the largest micro-batch for which there was memory
};

TaskView::TaskView(PythonComputation& owner, const Task& task, Weights& weights, Sink& sink, const Stop& stop)
    : owner_(&owner),
      task_(task),
      weights_(weights),
      sink_(sink),
      stop_(stop),
      loaded_(owner.layout().chunks().size()) {}

std::vector<Elements> TaskView::load(std::uint64_t first, std::optional<std::uint64_t> last) {
  check();
  const nb::gil_scoped_release no_gil;
  const auto chunks = owner_->layout().chunks();
  std::vector<Elements> came;
  for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk) {
    const std::uint64_t begin = chunks[chunk].offset, end = begin + chunks[chunk].elements;
    const bool asked = begin < last.value_or(end) && first < end;
    if (loaded_[chunk] || (!asked && !weights_.here(chunk))) continue;
    if (!owner_->load(weights_, chunk)) return came;
    loaded_[chunk] = true;
    extend(came, {begin, end});
  }
  return came;
}

std::vector<Elements> TaskView::missing() const {
  check();
  const auto chunks = owner_->layout().chunks();
  std::vector<Elements> found;
  for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk)
    if (!loaded_[chunk]) extend(found, {chunks[chunk].offset, chunks[chunk].offset + chunks[chunk].elements});
  return found;
}

void TaskView::begin(std::uint64_t count, double weight, double loss_sum) {
  check();
  if (begun_ || count == 0) throw std::runtime_error("begin() comes once, for at least one sample");
  begun_ = true;
  sink_.begin(count, weight, loss_sum);
  if (!task_.resident) owner_->publisher().start(sink_);
}

void TaskView::final(std::size_t placement) {
  check();
  if (!begun_ || placement >= owner_->layout().placements().size()) throw nb::index_error();
  const nb::gil_scoped_release no_gil;
  owner_->publisher().placement_final(placement);
}

void TaskView::finish() {
  check();
  if (!begun_) throw std::runtime_error("finish() comes after begin()");
  const nb::gil_scoped_release no_gil;
  owner_->publisher().finish();
}

}  // namespace

std::unique_ptr<Computation> make_computation(nb::object computation, Layout layout) {
  return std::make_unique<PythonComputation>(std::move(computation), std::move(layout));
}

void bind_task(nb::module_& m) {
  nb::class_<TaskView>(m, "Task")
      .def_prop_ro("kind", &TaskView::kind)
      .def_prop_ro("contributes", &TaskView::contributes)
      .def_prop_ro("version", [](const TaskView& view) { return view.task().version; })
      .def_prop_ro("first", [](const TaskView& view) { return view.task().first; })
      .def_prop_ro("epoch", [](const TaskView& view) { return view.task().epoch; })
      .def_prop_ro("order_first", [](const TaskView& view) { return view.task().order_first; })
      .def_prop_ro("count", [](const TaskView& view) { return view.task().indices.size(); })
      .def_prop_ro("micro_batch", [](const TaskView& view) { return view.task().micro_batch; })
      .def_prop_ro("resident", [](const TaskView& view) { return view.task().resident; })
      .def_prop_ro("seed", [](const TaskView& view) { return view.task().seed; })
      .def_prop_ro("state_number", [](const TaskView& view) { return view.task().state.number; })
      .def_prop_ro("state",
                   [](const TaskView& view) {
                     const auto bytes = view.task().state.bytes.bytes();
                     return nb::bytes(bytes.data(), bytes.size());
                   })
      .def("indices", &TaskView::indices, nb::arg("first"), nb::arg("count"))
      .def_prop_ro("from_end", [](const TaskView& view) { return view.task().from_end; })
      .def("limit", &TaskView::limit)
      .def("claim", &TaskView::claim, nb::arg("count"))
      .def("at", &TaskView::at, nb::arg("done"), nb::arg("count"))
      .def("load", &TaskView::load, nb::arg("first") = 0, nb::arg("last") = nb::none())
      .def("missing", &TaskView::missing)
      .def("begin", &TaskView::begin, nb::arg("count"), nb::arg("weight"), nb::arg("loss_sum"))
      .def("progress", &TaskView::progress, nb::arg("done"))
      .def("final", &TaskView::final, nb::arg("placement"))
      .def("finish", &TaskView::finish);
}

}  // namespace motley::python
