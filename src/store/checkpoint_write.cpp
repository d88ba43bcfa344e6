#include <algorithm>
#include <array>
#include <deque>
#include <system_error>

#include "base/assert.h"
#include "base/little_endian.h"
#include "store/checkpoint_files.h"
#include "store/file.h"

namespace motley::store {
namespace {

Error wrong_content(const std::string& what) {
  return {ErrorCode::internal, "checkpoint: " + what, "report this as a bug"};
}

// The chunks must be whole; a missing one (empty) is allowed for optimizer state.
Status check_chunks(const Layout& layout, const std::vector<SharedBytes>& chunks, bool may_miss,
                    const std::string& what) {
  if (chunks.size() != layout.chunks().size()) {
    return wrong_content(what + " has " + std::to_string(chunks.size()) + " chunks, the layout " +
                         std::to_string(layout.chunks().size()));
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::size_t expected = std::size_t{4} * layout.chunks()[i].elements;
    if (chunks[i].size() == expected || (may_miss && chunks[i].empty())) continue;
    return wrong_content(what + ", chunk " + std::to_string(i) + ": " + std::to_string(chunks[i].size()) +
                         " bytes, expected " + std::to_string(expected));
  }
  return {};
}

std::vector<SharedBytes> slices(const Layout& layout, const Placement& placement,
                                const std::vector<SharedBytes>& chunks) {
  std::vector<SharedBytes> parts;
  for (const Piece& piece : pieces_of(layout, placement)) {
    parts.push_back(chunks[piece.chunk].slice(piece.offset, piece.bytes));
  }
  return parts;
}

SharedBytes counter_bytes(const LayoutEntry& entry, std::uint64_t step) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.elements()) * 8);
  for (std::size_t i = 0; i < bytes.size(); i += 8) store_le<std::uint64_t>(bytes.data() + i, entry.counter_at(step));
  return SharedBytes::copy_of(bytes);
}

// Every entry under its state_dict name; aliases repeat their target.
Result<Safetensors> model_tensors(const CheckpointContent& content) {
  const Layout& layout = content.layout;
  if (Status done = check_chunks(layout, content.weights, false, "weights"); !done) return std::move(done).error();
  std::vector<std::vector<SharedBytes>> parts(layout.entries().size());
  for (const Placement& placement : layout.placements())
    parts[placement.entry] = slices(layout, placement, content.weights);
  const auto by_name = entries_by_name(layout);
  Safetensors model;
  model.metadata = {{"format", "pt"}};
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    const LayoutEntry& entry = layout.entries()[i];
    const auto source = resolve_alias(layout, i, by_name);
    if (!source) return wrong_content("the alias " + in_quotes(entry.name) + " leads nowhere");
    const LayoutEntry& from = layout.entries()[*source];
    TensorView tensor{entry.name, from.dtype, entry.shape, parts[*source]};
    if (entry.kind == TensorKind::alias && entry.elements() != from.elements()) tensor.shape = from.shape;
    if (from.kind == TensorKind::counter) {
      tensor.dtype = DType::i64;
      tensor.parts = {counter_bytes(from, content.step)};
    } else if (from.kind == TensorKind::frozen) {
      const auto frozen = content.frozen.find(from.name);
      if (frozen == content.frozen.end())
        return wrong_content("the frozen tensor " + in_quotes(from.name) + " is missing");
      tensor.parts = {frozen->second};
    }
    model.tensors.push_back(std::move(tensor));
  }
  return model;
}

Result<Safetensors> optimizer_tensors(const CheckpointContent& content) {
  const Layout& layout = content.layout;
  Safetensors optimizer;
  optimizer.metadata = {{"format", "pt"}, {"step", std::to_string(content.step)}};
  for (const auto& [state, chunks] : content.optimizer) {
    if (state.empty() || state.find('.') != std::string::npos)
      return wrong_content("the state name " + in_quotes(state));
    if (Status done = check_chunks(layout, chunks, true, "state " + state); !done) return std::move(done).error();
    for (const Placement& placement : layout.placements()) {
      const auto pieces = pieces_of(layout, placement);
      const auto present = std::count_if(pieces.begin(), pieces.end(),
                                         [&held = chunks](const Piece& piece) { return !held[piece.chunk].empty(); });
      if (present == 0) continue;
      const LayoutEntry& entry = layout.entries()[placement.entry];
      if (static_cast<std::size_t>(present) != pieces.size())
        return wrong_content("half of the state of " + in_quotes(entry.name));
      optimizer.tensors.push_back(
          {entry.name + "." + state, DType::f32, entry.shape, slices(layout, placement, chunks)});
    }
  }
  return optimizer;
}

std::uint64_t bytes_of(const Safetensors& content) {
  std::uint64_t bytes = 0;
  for (const TensorView& tensor : content.tensors) {
    for (const SharedBytes& part : tensor.parts) bytes += part.size();
  }
  return bytes;
}

Status write_files(const std::filesystem::path& directory, const CheckpointContent& content, const Safetensors& model,
                   const Safetensors& optimizer) {
  auto model_hash = write_safetensors_hashed(directory / kModelFile, model);
  if (!model_hash) return std::move(model_hash).error();
  auto optimizer_hash = write_safetensors_hashed(directory / kOptimizerFile, optimizer);
  if (!optimizer_hash) return std::move(optimizer_hash).error();
  auto text = encode_run_json(content, *model_hash, *optimizer_hash);
  if (!text) return std::move(text).error();
  auto file = File::open(directory / kRunFile, File::Mode::create);
  if (!file) return std::move(file).error();
  if (Status done = file->write(std::as_bytes(std::span(*text))); !done) return done;
  if (Status done = file->sync(); !done) return done;
  return sync_directory(directory);
}

// Puts `temporary` in the place of `final`. One of the same step (written before a rollback) is moved aside first, and
// clean_checkpoints() brings it back should this process end in between.
Status publish(const std::filesystem::path& temporary, const std::filesystem::path& final) {
  std::error_code failure;
  const auto aside = hidden_beside(final, "old");
  const bool replaces = std::filesystem::exists(final, failure);
  if (replaces) {
    if (Status done = rename_path(final, aside); !done) return done;
  }
  if (Status done = rename_path(temporary, final); !done) {
    if (replaces) static_cast<void>(rename_path(aside, final));
    return done;
  }
  if (Status done = sync_directory(final.parent_path()); !done) return done;
  if (replaces) std::filesystem::remove_all(aside, failure);
  return {};
}

void delete_older(const std::filesystem::path& checkpoints, std::uint64_t newest, std::size_t keep) {
  std::size_t kept = 0;
  for (const std::uint64_t step : checkpoint_steps(checkpoints)) {
    if (step > newest || step == 0 || kept++ < std::max<std::size_t>(keep, 1)) continue;
    std::error_code ignored;  // it is tried again after the next checkpoint
    // Under a name that nobody takes for a checkpoint, so that a crash leaves no half of one.
    const auto doomed = hidden_beside(checkpoints / checkpoint_name(step), "tmp");
    std::filesystem::rename(checkpoints / checkpoint_name(step), doomed, ignored);
    std::filesystem::remove_all(doomed, ignored);
  }
}

}  // namespace

Result<std::filesystem::path> write_checkpoint(const std::filesystem::path& run_dir, const CheckpointContent& content,
                                               std::size_t keep) {
  auto model = model_tensors(content);
  if (!model) return std::move(model).error();
  auto optimizer = optimizer_tensors(content);
  if (!optimizer) return std::move(optimizer).error();

  const auto checkpoints = checkpoints_of(run_dir);
  if (Status done = make_directories(checkpoints); !done) return std::move(done).error();
  clean_checkpoints(checkpoints);
  const std::string name = checkpoint_name(content.step);
  const auto temporary = hidden_beside(checkpoints / name, "tmp");
  const auto final = checkpoints / name;
  Status done = make_directories(temporary);
  if (done) done = write_files(temporary, content, *model, *optimizer);
  if (done) done = publish(temporary, final);
  if (!done) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary, ignored);
    Error error = std::move(done).error();
    if (error.code == ErrorCode::disk_full) {
      error.message += " (the checkpoint of step " + std::to_string(content.step) + " takes " +
                       std::to_string(bytes_of(*model) + bytes_of(*optimizer)) +
                       " bytes; older checkpoints stay valid)";
    }
    return error;
  }
  if (Status latest = replace_file(checkpoints / kLatestFile, name + "\n"); !latest) return std::move(latest).error();
  delete_older(checkpoints, content.step, keep);
  return final;
}

}  // namespace motley::store
