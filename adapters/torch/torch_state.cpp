// Between a model and its state as the head keeps it: initial weights out, trained weights into a TorchScript file.
#include <cstring>
#include <system_error>

#include "base/assert.h"
#include "machine/spare_memory.h"
#include "torch/cpu_memory.h"
#include "torch/guard.h"
#include "torch/inspect.h"

namespace motley::torch_adapter {
namespace {

constexpr const char* kSmallerModel = "use a smaller model, or a machine with more memory";

SharedBytes bytes_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
  return SharedBytes::copy_of({static_cast<const std::byte*>(flat.const_data_ptr()), flat.nbytes()});
}

/// Copies between a flat vector in chunks and one tensor's elements, chunk by chunk.
template <class Copy>
void for_each_piece(const Layout& layout, const Placement& place, Copy&& copy) {
  for (ChunkId id = 0; id < layout.chunks().size(); ++id) {
    const Chunk& chunk = layout.chunks()[id];
    const std::uint64_t first = std::max(chunk.offset, place.offset);
    const std::uint64_t last = std::min(chunk.offset + chunk.elements, place.offset + place.elements);
    if (first < last) copy(id, first - chunk.offset, first - place.offset, last - first);
  }
}

Status put(const at::Tensor& tensor, const SharedBytes& bytes, const std::string& name) {
  if (bytes.size() != tensor.nbytes()) {
    return Error{ErrorCode::mismatch,
                 name + " has " + std::to_string(bytes.size()) + " bytes, expected " + std::to_string(tensor.nbytes()),
                 "use the checkpoint of this model"};
  }
  at::Tensor flat = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).requires_grad(false));
  std::memcpy(flat.data_ptr(), bytes.bytes().data(), bytes.size());
  tensor.detach().copy_(flat);
  return {};
}

/// What tells the model's tensors from the layout's entries; or empty. Kinds are not compared: finding them takes a
/// trial pass, for which nobody knows the shape of a sample here.
std::string tensor_difference(const std::vector<NamedTensor>& tensors, const Layout& layout) {
  const auto entries = layout.entries();
  for (std::size_t i = 0; i < std::min(tensors.size(), entries.size()); ++i) {
    const std::vector<std::int64_t> shape = tensors[i].tensor.sizes().vec();
    if (tensors[i].name != entries[i].name) {
      return "tensor " + std::to_string(i) + " is " + tensors[i].name + " in the model, " + entries[i].name +
             " in the checkpoint";
    }
    if (shape != entries[i].shape || tensors[i].alias_of != entries[i].alias_of) {
      return tensors[i].name + " has another shape, or is tied to another tensor, in the checkpoint";
    }
  }
  if (tensors.size() == entries.size()) return {};
  return "the model has " + std::to_string(tensors.size()) + " tensors, the checkpoint " +
         std::to_string(entries.size());
}

Status fill(const std::vector<NamedTensor>& tensors, const Layout& layout, std::span<const SharedBytes> weights,
            const std::map<std::string, SharedBytes>& frozen, std::uint64_t step) {
  const at::NoGradGuard no_grad;
  for (const Placement& place : layout.placements()) {
    std::vector<float> values(place.elements);
    for_each_piece(layout, place, [&](ChunkId chunk, std::uint64_t from, std::uint64_t to, std::uint64_t count) {
      const std::span<const float> source = weights[chunk].floats().subspan(from, count);
      std::copy(source.begin(), source.end(), values.begin() + static_cast<std::ptrdiff_t>(to));
    });
    const at::Tensor& tensor = tensors[place.entry].tensor;
    tensor.detach().copy_(at::from_blob(values.data(), tensor.sizes(), at::kFloat));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const LayoutEntry& entry = layout.entries()[i];
    if (entry.kind == TensorKind::counter) {
      tensors[i].tensor.fill_(static_cast<std::int64_t>(entry.counter_at(step)));
    }
    if (entry.kind != TensorKind::frozen) continue;
    const auto found = frozen.find(entry.name);
    const Status filled = found == frozen.end() ? Status() : put(tensors[i].tensor, found->second, entry.name);
    if (!filled) return filled;
  }
  return {};
}

}  // namespace

Result<InitialState> initial_state(const ModelSpec& model) {
  return guarded("building the model '" + model.kind + "'", [&]() -> Result<InitialState> {
    // On one thread: the helpers of a team of this thread's would stay, and OpenMP would then take the machine for
    // overloaded and put the computing thread's team to sleep at every barrier.
    at::set_num_threads(1);
    fit_cpu_memory();
    const Result<InspectedModel> inspected = inspect(model);
    if (!inspected) return inspected.error();
    const Layout& layout = inspected->layout;
    const std::uint64_t copies = 2 * layout.flat_elements() * sizeof(float);
    if (Status room = machine::check_memory_for(copies, "copying the model's weights", kSmallerModel); !room) {
      return room.error();
    }
    const std::vector<NamedTensor>& tensors = inspected->model->tensors();
    InitialState state{layout, {}, {}, inspected->acts_on_groups, inspected->draws_random_numbers};
    std::vector<std::vector<float>> chunks;
    for (const Chunk& chunk : layout.chunks()) chunks.emplace_back(chunk.elements, 0.0F);
    for (const Placement& place : layout.placements()) {
      const at::Tensor flat = tensors[place.entry].tensor.detach().to(at::kFloat).contiguous();
      const float* values = flat.const_data_ptr<float>();
      for_each_piece(layout, place, [&](ChunkId chunk, std::uint64_t to, std::uint64_t from, std::uint64_t count) {
        std::copy_n(values + from, count, chunks[chunk].begin() + static_cast<std::ptrdiff_t>(to));
      });
    }
    for (std::vector<float>& chunk : chunks) {
      state.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(chunk))));
      std::vector<float>().swap(chunk);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const LayoutEntry& entry = layout.entries()[i];
      if (entry.kind == TensorKind::frozen) state.frozen[entry.name] = bytes_of(tensors[i].tensor);
    }
    return state;
  });
}

Result<std::unique_ptr<Model>> restore_model(const ModelSpec& spec, const Layout& layout,
                                             std::span<const SharedBytes> weights,
                                             const std::map<std::string, SharedBytes>& frozen, std::uint64_t step) {
  Result<std::unique_ptr<Model>> made = make_model(spec);
  if (!made) return made;
  const std::vector<NamedTensor>& tensors = (*made)->tensors();
  const std::string differs = tensor_difference(tensors, layout);
  if (!differs.empty() || weights.size() != layout.chunks().size()) {
    return Error{ErrorCode::mismatch, "the weights are of another model: " + differs,
                 "use the model and the checkpoint of the same run"};
  }
  const Status filled = fill(tensors, layout, weights, frozen, step);
  if (!filled) return filled.error();
  (*made)->train(false);
  return made;
}

Status export_torchscript(const ModelSpec& model, const Layout& layout, std::span<const SharedBytes> weights,
                          const std::map<std::string, SharedBytes>& frozen, std::uint64_t step,
                          const std::filesystem::path& path) {
  return guarded("exporting the model to " + path.string(), [&]() -> Status {
    const Result<std::unique_ptr<Model>> restored = restore_model(model, layout, weights, frozen, step);
    if (!restored) return restored.error();
    std::error_code failed;
    const std::filesystem::path parent = path.parent_path();
    if (!parent.empty()) std::filesystem::create_directories(parent, failed);
    return (*restored)->save(path);
  });
}

}  // namespace motley::torch_adapter
