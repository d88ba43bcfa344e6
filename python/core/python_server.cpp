#include "python_server.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "tensor/flat_chunks.h"

namespace motley::python {
namespace {

template <class Call>
Status with_gil(ErrorCode code, const Call& call) {
  const nb::gil_scoped_acquire gil;
  try {
    call();
    return {};
  } catch (const std::exception& error) {
    return error_of(error, "the device", code);
  }
}

/// What of a kept gradient lies where.
struct Gradient {
  explicit Gradient(nb::object object) : owner(std::move(object)) {}
  Kept owner;
  std::vector<OnDevice> chunks;
};

nb::object memory_of(std::span<const std::byte> bytes) {
  // Nobody writes there: torch warns of memory that cannot be written.
  auto* at = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  return nb::steal(PyMemoryView_FromMemory(at, static_cast<Py_ssize_t>(bytes.size()), PyBUF_WRITE));
}

std::uintptr_t address_of(const SharedBytes& bytes, const Chunk& place) {
  return reinterpret_cast<std::uintptr_t>(bytes.bytes().data()) - place.offset * sizeof(float);
}

}  // namespace

Status PythonServer::settle(const Snapshot& state, OptimizerKind kind) {
  device_optimizer_.reset();
  Status opened = with_gil(ErrorCode::memory, [&] {
    nb::list chunks;
    for (const Chunk& chunk : layout_.chunks()) chunks.append(nb::make_tuple(chunk.offset, chunk.elements));
    python_.get().attr("open")(chunks);
    const auto host =
        nb::cast<nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(python_.get().attr("host"));
    host_ = {host.data(), host.size()};
    device_optimizer_.emplace(python_.get().attr("device_optimizer"), layout_, host_, host_);
  });
  if (opened) opened = device_optimizer_->settle(state, kind);
  if (!opened) {
    leave();
    return opened;
  }
  now_has(state.weights);
  settled_ = true;
  return {};
}

void PythonServer::now_has(std::vector<SharedBytes> weights) {
  const std::lock_guard lock(mutex_);
  weights_ = std::move(weights);
}

bool PythonServer::has(std::span<const SharedBytes> weights) const {
  const auto same = [](const SharedBytes& a, const SharedBytes& b) {
    return !a.empty() && a.bytes().data() == b.bytes().data();
  };
  const std::lock_guard lock(mutex_);
  return std::ranges::equal(weights, weights_, same);
}

Status PythonServer::sum(std::span<const std::vector<GradientPart>> chunks) {
  return with_gil(ErrorCode::memory, [&] {
    nb::list all;
    for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk) {
      nb::list parts;
      for (const GradientPart& part : chunks[chunk]) {
        if (part.bytes.on_device() != nullptr) {
          parts.append(nb::make_tuple(0, address_of(part.bytes, layout_.chunks()[chunk])));
        } else {
          parts.append(nb::make_tuple(part.codec, memory_of(part.bytes.bytes())));
        }
      }
      all.append(parts);
    }
    python_.get().attr("sum")(all);
  });
}

Result<StepNumbers> PythonServer::reduce(double weight, std::uint64_t samples) {
  return device_optimizer_->reduce(weight, samples);
}

Status PythonServer::update(std::span<const StepScalars> groups, float factor) {
  return device_optimizer_->update(groups, factor);
}

Result<std::vector<SharedBytes>> PythonServer::download_weights() {
  const Status came = with_gil(ErrorCode::io, [&] { python_.get().attr("download")(); });
  if (!came) return came.error();
  std::vector<SharedBytes> weights = copy_chunks(layout_, host_, true);
  now_has(weights);
  return weights;
}

Result<Snapshot> PythonServer::download(bool aside) { return device_optimizer_->download(aside); }

Result<SharedBytes> PythonServer::fetch(const SharedBytes& on_device) {
  const std::size_t elements = on_device.size() / sizeof(float);
  const Status came = with_gil(ErrorCode::io, [&] {
    python_.get().attr("fetch")(reinterpret_cast<std::uintptr_t>(on_device.bytes().data()), elements);
  });
  if (!came) return came.error();
  return SharedBytes::copy_of(std::as_bytes(host_.first(elements)));
}

void PythonServer::leave() {
  settled_ = false;
  now_has({});
  device_optimizer_.reset();
  static_cast<void>(with_gil(ErrorCode::io, [&] { python_.get().attr("leave")(); }));
}

Result<std::vector<SharedBytes>> PythonServer::keep() {
  std::vector<SharedBytes> kept;
  const Status done = with_gil(ErrorCode::memory, [&] {
    using Answer = std::tuple<nb::object, std::uintptr_t, std::vector<float>>;
    const auto [owner, address, largest] = nb::cast<Answer>(python_.get().attr("keep")());
    const auto gradient = std::make_shared<Gradient>(owner);
    for (const float value : largest) gradient->chunks.push_back({value});
    for (ChunkId chunk = 0; chunk < layout_.chunks().size(); ++chunk) {
      const Chunk& place = layout_.chunks()[chunk];
      // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody reads there
      const auto* at = reinterpret_cast<const std::byte*>(address) + place.offset * sizeof(float);
      kept.emplace_back(gradient, std::span(at, place.elements * sizeof(float)), &gradient->chunks.at(chunk));
    }
  });
  if (!done) return done.error();
  return kept;
}

}  // namespace motley::python
