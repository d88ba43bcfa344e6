#include <algorithm>
#include <cstring>
#include <set>

#include "base/assert.h"
#include "store/checkpoint_files.h"
#include "store/file.h"

namespace motley::store {
namespace {

using ByName = std::map<std::string, std::size_t, std::less<>>;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// Chunk buffers of one kind (the weights, or one optimizer state), made when first written to and zero elsewhere.
class Chunks {
 public:
  Chunks(const Layout& layout, BufferPool& pool) : layout_(layout), pool_(pool), buffers_(layout.chunks().size()) {}

  std::span<std::byte> at(const Piece& piece) {
    MutableBytes& buffer = buffers_[piece.chunk];
    if (buffer.bytes().empty()) {
      buffer = pool_.take(std::size_t{4} * layout_.chunks()[piece.chunk].elements);
      std::memset(buffer.bytes().data(), 0, buffer.bytes().size());
    }
    return buffer.bytes().subspan(piece.offset, piece.bytes);
  }
  std::vector<SharedBytes> seal() && {
    std::vector<SharedBytes> chunks;
    chunks.reserve(buffers_.size());
    for (MutableBytes& buffer : buffers_) chunks.push_back(std::move(buffer).seal());
    return chunks;
  }

 private:
  const Layout& layout_;
  BufferPool& pool_;
  std::vector<MutableBytes> buffers_;
};

class Reader {
 public:
  Reader(std::filesystem::path directory, RunJson run)
      : directory_(std::move(directory)), run_(std::move(run)), by_name_(entries_by_name(layout())) {
    placement_of_.resize(layout().entries().size(), nullptr);
    for (const Placement& placement : layout().placements()) placement_of_[placement.entry] = &placement;
  }

  Status read_model() {
    auto file = open(kModelFile, run_.model);
    if (!file) return std::move(file).error();
    Chunks weights(layout(), pool_);
    std::size_t seen = 0;
    for (const HeaderTensor& tensor : file->header().tensors) {
      const auto entry = by_name_.find(tensor.name);
      if (entry == by_name_.end())
        return wrong(kModelFile, "the tensor " + in_quotes(tensor.name) + " is not in the layout");
      if (Status done = read_entry(*file, tensor, entry->second, weights); !done) return done;
      ++seen;  // names are unique on both sides
    }
    if (seen != layout().entries().size()) {
      return wrong(kModelFile,
                   std::to_string(seen) + " tensors, the layout has " + std::to_string(layout().entries().size()));
    }
    run_.content.weights = std::move(weights).seal();
    return check_hash(*file, kModelFile, run_.model);
  }

  Status read_optimizer() {
    auto file = open(kOptimizerFile, run_.optimizer);
    if (!file) return std::move(file).error();
    std::map<std::string, Chunks, std::less<>> states;
    for (const std::string& state : run_.optimizer_states) states.try_emplace(state, layout(), pool_);
    for (const HeaderTensor& tensor : file->header().tensors) {
      const std::size_t dot = tensor.name.rfind('.');
      const auto entry = by_name_.find(std::string_view(tensor.name).substr(0, dot));
      const auto state =
          dot == std::string::npos ? states.end() : states.find(std::string_view(tensor.name).substr(dot + 1));
      if (entry == by_name_.end() || state == states.end() || placement_of_[entry->second] == nullptr) {
        return wrong(kOptimizerFile, "the tensor " + in_quotes(tensor.name) + " belongs to no parameter and state");
      }
      if (Status done = check(kOptimizerFile, tensor, layout().entries()[entry->second].shape, DType::f32); !done)
        return done;
      if (Status done = read_pieces(*file, entry->second, state->second); !done) return done;
    }
    for (auto& [name, chunks] : states) run_.content.optimizer.emplace(name, std::move(chunks).seal());
    return check_hash(*file, kOptimizerFile, run_.optimizer);
  }

  CheckpointContent take() && { return std::move(run_.content); }

 private:
  [[nodiscard]] const Layout& layout() const { return run_.content.layout; }

  Error wrong(const char* file, const std::string& why) const {
    return {ErrorCode::input, (directory_ / file).string() + ": " + why, "use an older checkpoint"};
  }
  Result<SafetensorsReader> open(const char* file, const FileHash& expected) const {
    auto reader = SafetensorsReader::open(directory_ / file);
    if (!reader) return reader;
    const std::uint64_t data = reader->header().tensors.empty() ? 0 : reader->header().tensors.back().end;
    const std::uint64_t size = reader->hash().bytes + data;
    if (size != expected.bytes) {
      return wrong(file, std::to_string(size) + " bytes, run.json says " + std::to_string(expected.bytes));
    }
    return reader;
  }
  Status check_hash(const SafetensorsReader& reader, const char* file, const FileHash& expected) const {
    if (reader.hash() == expected) return {};
    return wrong(file, "the CRC-32C is not the one in run.json: the file is damaged");
  }
  Status check(const char* file, const HeaderTensor& tensor, const std::vector<std::int64_t>& shape,
               DType dtype) const {
    if (tensor.shape == shape && tensor.dtype == dtype) return {};
    return wrong(file, in_quotes(tensor.name) + " is " + std::string(dtype_word(tensor.dtype)) +
                           shape_text(tensor.shape) + ", the layout says " + std::string(dtype_word(dtype)) +
                           shape_text(shape));
  }
  Status read_pieces(SafetensorsReader& file, std::size_t entry, Chunks& chunks) {
    for (const Piece& piece : pieces_of(layout(), *placement_of_[entry])) {
      if (Status done = file.read(chunks.at(piece)); !done) return done;
    }
    return {};
  }
  Status read_entry(SafetensorsReader& file, const HeaderTensor& tensor, std::size_t index, Chunks& weights) {
    const LayoutEntry& entry = layout().entries()[index];
    if (placement_of_[index] != nullptr) {
      if (Status done = check(kModelFile, tensor, entry.shape, DType::f32); !done) return done;
      return read_pieces(file, index, weights);
    }
    MutableBytes bytes = pool_.take(static_cast<std::size_t>(tensor.end - tensor.begin));
    if (Status done = file.read(bytes.bytes()); !done) return done;
    if (entry.kind != TensorKind::frozen) return {};  // an alias repeats its target; a counter is the step
    if (Status done = check(kModelFile, tensor, entry.shape, entry.dtype); !done) return done;
    run_.content.frozen.emplace(entry.name, std::move(bytes).seal());
    return {};
  }

  std::filesystem::path directory_;
  RunJson run_;
  ByName by_name_;
  std::vector<const Placement*> placement_of_;
  BufferPool pool_{0};
};

}  // namespace

Result<CheckpointContent> read_checkpoint(const std::filesystem::path& checkpoint_dir) {
  const auto file = checkpoint_dir / kRunFile;
  auto text = read_whole_file(file, kRunJsonBytesMax);
  if (!text) return std::move(text).error();
  auto run = decode_run_json(*text, file.string());
  if (!run) return std::move(run).error();
  Reader reader(checkpoint_dir, std::move(*run));
  if (Status done = reader.read_model(); !done) return std::move(done).error();
  if (Status done = reader.read_optimizer(); !done) return std::move(done).error();
  return std::move(reader).take();
}

Result<CheckpointContent> read_latest_checkpoint(const std::filesystem::path& run_dir,
                                                 std::vector<std::string>& warnings) {
  const auto checkpoints = checkpoints_of(run_dir);
  std::vector<std::uint64_t> steps = checkpoint_steps(checkpoints);
  if (steps.empty()) {
    return Error{ErrorCode::input, checkpoints.string() + " holds no checkpoint", "start the run without --resume"};
  }
  std::uint64_t newest = steps.front();
  if (const auto latest = read_whole_file(checkpoints / kLatestFile, 64)) {
    const auto named = checkpoint_step(std::string_view(*latest).substr(0, latest->find('\n')));
    if (named) newest = *named;
  }
  // Those above `latest` were not finished or belong to a history that was rolled back: the last resort.
  std::sort(steps.begin(), steps.end(), [newest](std::uint64_t a, std::uint64_t b) {
    return (a <= newest) != (b <= newest) ? a <= newest : a > b;
  });
  Error last;
  for (const std::uint64_t step : steps) {
    auto content = read_checkpoint(checkpoints / checkpoint_name(step));
    if (content && content->step == step) {
      if (!warnings.empty()) warnings.push_back("going on from " + checkpoint_name(step));
      return content;
    }
    last = content ? Error{ErrorCode::input, checkpoint_name(step) + " holds another step", ""} : content.error();
    warnings.push_back("checkpoint not usable: " + last.message);
  }
  last.message = "no usable checkpoint in " + checkpoints.string() + "; of the last: " + last.message;
  last.hint = "restore the directory from a copy, or start a new run";
  return last;
}

}  // namespace motley::store
