#include "sim/reference.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "data/order.h"
#include "modes/work/pass.h"
#include "sim/plain_sum.h"

namespace motley::sim {
Result<ps::Server> make_server(const RunSetup& run, const Layout& layout, const ps::Snapshot& snapshot) {
  if (run.local_steps > 0) return ps::Server::make(layout, run.outer, {}, 0, snapshot);
  return ps::Server::make(layout, run.optimizer, run.schedule, run.clip_norm, snapshot);
}

Result<ps::Server> first_server(const RunSetup& run, const softmax::SoftmaxRegression& model) {
  const std::vector<float> flat = model.initial_weights();
  ps::Snapshot snapshot;
  for (const Chunk& chunk : model.layout().chunks()) {
    snapshot.weights.push_back(
        SharedBytes::copy_of(std::as_bytes(std::span(flat).subspan(chunk.offset, chunk.elements))));
  }
  return make_server(run, model.layout(), snapshot);
}

Result<Reference> make_reference(const RunSetup& run, const Data& data) {
  auto model = softmax::SoftmaxRegression::make(data.train, data.test, run.seed);
  if (!model) return std::move(model).error();
  Result<ps::Server> made = first_server(run, **model);
  if (!made) return std::move(made).error();
  ps::Server& server = *made;
  if (run.clip_by_step_before) server.clip_by_step_before(std::nullopt);
  compute::TaskLoop loop(**model);
  Reference reference;
  reference.layout = server.layout();
  reference.first = reference.weights = weights_of(server);
  const auto chunks = static_cast<ChunkId>(server.layout().chunks().size());
  for (std::uint64_t step = 0; step < run.steps; ++step) {
    const StepRange pass = BatchPlan(run.train_samples, run.global_batch).range(step);
    std::vector<std::uint64_t> indices(pass.count);
    data::SampleOrder(run.seed, pass.epoch, run.train_samples).fill(pass.order_first, indices);
    const Result<PlainSum> all = plain_sum(loop, run.seed, step, indices, reference.weights);
    if (!all) return all.error();
    for (ChunkId chunk = 0; chunk < chunks; ++chunk) {
      const std::span<const float> part(all->gradients[chunk]);
      server.reduce(chunk, {&part, 1}, all->weight, pass.count);
    }
    MOTLEY_ASSERT(server.close_gradient().ok());
    for (ChunkId chunk = 0; chunk < chunks; ++chunk) server.apply(chunk);
    server.finish_step();
    reference.steps.push_back({all->weight, all->loss_sum});
    reference.weights = weights_of(server);
  }
  return reference;
}

Distance distance(const std::vector<SharedBytes>& a, const std::vector<SharedBytes>& b) {
  MOTLEY_ASSERT(a.size() == b.size());
  Distance result;
  result.same_bits = true;
  double difference = 0, norm = 0;
  for (std::size_t chunk = 0; chunk < a.size(); ++chunk) {
    MOTLEY_ASSERT(a[chunk].size() == b[chunk].size());
    if (std::memcmp(a[chunk].bytes().data(), b[chunk].bytes().data(), a[chunk].size()) != 0) result.same_bits = false;
    const auto x = a[chunk].floats();
    const auto y = b[chunk].floats();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double d = double{x[i]} - double{y[i]};
      difference += d * d;
      norm += double{y[i]} * double{y[i]};
    }
  }
  result.relative = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  return result;
}

std::vector<Course> courses(const Reference& reference, const std::vector<SharedBytes>& weights) {
  const Layout& layout = reference.layout;
  std::vector<double> found(layout.flat_elements()), wanted(layout.flat_elements());
  for (std::size_t chunk = 0; chunk < weights.size(); ++chunk) {
    const auto first = reference.first[chunk].floats(), here = weights[chunk].floats(),
               there = reference.weights[chunk].floats();
    for (std::size_t i = 0; i < first.size(); ++i) {
      found[layout.chunks()[chunk].offset + i] = double{here[i]} - double{first[i]};
      wanted[layout.chunks()[chunk].offset + i] = double{there[i]} - double{first[i]};
    }
  }
  std::vector<Course> all;
  for (const Placement& placement : layout.placements()) {
    double both = 0, ours = 0, theirs = 0;
    for (std::uint64_t i = placement.offset; i < placement.offset + placement.elements; ++i) {
      both += found[i] * wanted[i];
      ours += found[i] * found[i];
      theirs += wanted[i] * wanted[i];
    }
    if (theirs == 0) continue;
    all.push_back({layout.entries()[placement.entry].name, ours > 0 ? both / std::sqrt(ours * theirs) : 0,
                   std::sqrt(ours / theirs)});
  }
  return all;
}

}  // namespace motley::sim
