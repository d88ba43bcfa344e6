#include "engine/head/device_steps.h"

#include <utility>

#include "base/assert.h"

namespace motley::engine {

Status DeviceSteps::move_to(std::shared_ptr<DeviceServer> device) {
  if (Status settled = server_.settle(*device); !settled) return settled;
  device_ = std::move(device);
  return {};
}

void DeviceSteps::collect(ChunkId chunk, const modes::Coverage& coverage) {
  collected_.resize(server_.layout().chunks().size());
  for (const auto& piece : coverage.pieces(chunk)) {
    collected_[chunk].push_back(uploads_.part(piece.lease, chunk));
    uploads_.release(piece.lease, chunk);
  }
  ++count_;
}

Status DeviceSteps::make(double weight, std::uint64_t samples, std::optional<Error>& left) {
  Status done = sum(weight, samples);
  if (done) {
    has_state_ = true;
    done = server_.step_at(*device_, norm_);
    if (done) done = server_.download_weights(*device_);
  } else {
    left = done.error();
    const std::shared_ptr<DeviceServer> device = device_;
    done = offload();
    if (done) done = sum_here(*device, weight, samples);
  }
  collected_.clear();
  count_ = 0;
  return done;
}

Status DeviceSteps::sum(double weight, std::uint64_t samples) {
  if (Status summed = device_->sum(collected_); !summed) return summed;
  const Result<StepNumbers> found = device_->reduce(weight, samples);
  if (!found) return found.error();
  norm_ = found->norm;
  return {};
}

Status DeviceSteps::sum_here(DeviceServer& device, double weight, std::uint64_t samples) {
  std::vector<codec::Encoded> parts;
  for (ChunkId chunk = 0; chunk < collected_.size(); ++chunk) {
    const std::size_t elements = server_.layout().chunks()[chunk].elements;
    parts.clear();
    for (GradientPart& part : collected_[chunk]) {
      if (part.bytes.on_device() != nullptr) {
        Result<SharedBytes> found = device.fetch(part.bytes);
        if (!found) return found.error();
        part.bytes = std::move(*found);
      }
      const auto values = codec::Encoded::make(static_cast<codec::CodecId>(part.codec), part.bytes.bytes(), elements);
      MOTLEY_ASSERT(values.has_value());
      parts.push_back(*values);
    }
    server_.reduce(chunk, parts, weight, samples);
  }
  return {};
}

Status DeviceSteps::download_state() {
  if (!has_state_) return {};
  Result<ps::Snapshot> found = server_.download(*device_);
  if (!found) return found.error();
  found->weights = server_.handles().weights;  // the same, and those that workers hold
  server_.adopt(*found);
  has_state_ = false;
  return {};
}

Status DeviceSteps::offload() {
  if (!device_) return {};
  if (Status downloaded = download_state(); !downloaded) return downloaded;
  std::exchange(device_, nullptr)->leave();
  return {};
}

}  // namespace motley::engine
