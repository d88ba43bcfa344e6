#include "bench/codec_speed.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "base/philox.h"
#include "bench/meter.h"
#include "codec/kernels.h"
#include "machine/spare_memory.h"
#include "ps/kernels.h"

namespace motley::bench {
namespace {

using codec::CodecId;
using codec::Kernels;

constexpr std::size_t kAdamBytes = 28;  // four arrays are read, three written
constexpr std::array kCodecs = {CodecId::bf16, CodecId::int8, CodecId::int4};

struct Arrays {
  explicit Arrays(std::size_t elements)
      : values(random(elements, 1)),
        residual(random(elements, 2)),
        left(elements),
        sum(elements),
        more(elements),
        body(elements * sizeof(float)) {}
  static std::vector<float> random(std::size_t elements, std::uint64_t seed) {
    Philox philox(seed);
    std::vector<float> result(elements);
    for (float& value : result) value = static_cast<float>(philox.next_u32()) * 0x1p-31F - 1;
    return result;
  }
  std::vector<float> values, residual, left, sum, more;
  std::vector<std::byte> body;
};

/// Raises `best` to what the work did, in gigabytes a second.
template <class Work>
void time(double& best, std::size_t bytes, Work work) {
  const Meter meter;
  work();
  best = std::max(best, static_cast<double>(bytes) / meter.wall_s() / 1e9);
}

void measure_row(CodecRow& row, const Kernels& set, Arrays& a) {
  const std::size_t count = a.values.size(), bytes = count * sizeof(float);
  const CodecId codec = row.codec;
  time(row.encode, bytes, [&] { set.encode(codec, a.values.data(), nullptr, count, a.body.data(), nullptr); });
  time(row.encode_feedback, bytes,
       [&] { set.encode(codec, a.values.data(), a.residual.data(), count, a.body.data(), a.left.data()); });
  const codec::Body encoded{codec, a.body.data(), count};
  time(row.decode, bytes, [&] { set.decode(encoded, 0, count, a.sum.data()); });
  time(row.decode_add, bytes, [&] { set.add(encoded, 0, count, a.sum.data()); });
  time(row.encode_delta, bytes, [&] {
    MOTLEY_ASSERT(set.encode_delta(codec, a.values.data(), a.residual.data(), count, a.body.data(), a.left.data()));
  });
  time(row.add_delta, bytes, [&] { MOTLEY_ASSERT(set.add_delta(encoded, a.residual.data(), a.sum.data())); });
}

void measure_adamw(CodecReport& report, Arrays& a, std::vector<float>& squares) {
  ps::GroupSpec group;
  group.weight_decay = 0.01;
  const ps::StepScalars scalars = ps::step_scalars(ps::OptimizerKind::adamw, group, group.lr, 10);
  const std::size_t count = a.values.size();
  std::fill(squares.begin(), squares.end(), 0.5F);
  time(report.adamw_touched, kAdamBytes * count, [&] {
    ps::adam({.count = count,
              .weights = a.values.data(),
              .mean = a.left.data(),
              .square = squares.data(),
              .gradient = a.sum.data(),
              .new_weights = a.sum.data(),
              .new_mean = a.more.data(),
              .new_square = reinterpret_cast<float*>(a.body.data())},
             scalars);
  });
}

}  // namespace

Result<CodecReport> measure_codecs(const CodecOptions& options, const runtime::StopSource& stop) {
  constexpr std::uint64_t kArrays = 7;
  if (Status status = machine::check_memory_for(kArrays * options.elements * sizeof(float), "measuring the codecs",
                                                "fewer --elements");
      !status)
    return status.error();
  Arrays arrays(options.elements);
  std::vector<float> squares(options.elements);
  CodecReport report;
  for (const Kernels* set : codec::kernels()) {
    for (const CodecId codec : kCodecs) {
      CodecRow row;
      row.set = set->name;
      row.codec = codec;
      report.rows.push_back(row);
    }
  }
  const std::size_t bytes = options.elements * sizeof(float);
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    std::size_t at = 0;
    for (const Kernels* set : codec::kernels()) {
      for (std::size_t codec = 0; codec < kCodecs.size(); ++codec) {
        if (stop.requested()) return Error{ErrorCode::interrupted, "interrupted", ""};
        time(report.memcpy_gb_s, bytes, [&] { std::memcpy(arrays.sum.data(), arrays.values.data(), bytes); });
        measure_row(report.rows[at++], *set, arrays);
      }
    }
    std::fill(arrays.left.begin(), arrays.left.end(), 0.25F);
    measure_adamw(report, arrays, squares);
  }
  report.memcpy_touched = 2 * report.memcpy_gb_s;
  return report;
}

}  // namespace motley::bench
