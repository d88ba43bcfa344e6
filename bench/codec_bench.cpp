// What codecs, deltas and the optimizer do on one core, beside a memcpy. One JSON object a row on standard output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/philox.h"
#include "bench/meter.h"
#include "codec/codec.h"
#include "codec/kernels.h"
#include "figures.h"
#include "machine/spare_memory.h"
#include "ps/kernels.h"

namespace {

using namespace motley;
using namespace motley::bench;

struct CodecOptions {
  std::size_t elements = std::size_t{1} << 24;
  std::uint32_t rounds = 7;
};

/// Gigabytes of fp32 a second.
struct CodecRow {
  std::string set;  // of instructions
  codec::CodecId codec = codec::CodecId::fp32;
  double encode = 0, encode_feedback = 0, decode = 0, decode_add = 0, encode_delta = 0, add_delta = 0;
};

struct CodecReport {
  double memcpy_gb_s = 0;     // copied
  double adamw_touched = 0;   // read and written: 28 bytes an element
  double memcpy_touched = 0;  // the same way of counting
  std::vector<CodecRow> rows;
};

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

/// The best of the rounds, in which all take turns. Errors: memory.
Result<CodecReport> measure_codecs(const CodecOptions& options) {
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

void print(const CodecReport& report, const CodecOptions& options) {
  say(Json{{"bench", "memory"},
           {"elements", options.elements},
           {"memcpy_gb_s", report.memcpy_gb_s},
           {"memcpy_touched_gb_s", report.memcpy_touched},
           {"adamw_touched_gb_s", report.adamw_touched}});
  for (const CodecRow& row : report.rows) {
    say(Json{{"bench", "codec"},
             {"set", row.set},
             {"codec", std::string(codec::to_word(row.codec))},
             {"encode_gb_s", row.encode},
             {"encode_feedback_gb_s", row.encode_feedback},
             {"decode_gb_s", row.decode},
             {"decode_add_gb_s", row.decode_add},
             {"encode_delta_gb_s", row.encode_delta},
             {"add_delta_gb_s", row.add_delta}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  CodecOptions options;
  CLI::App app("Codecs, deltas and the optimizer on one core, beside a memcpy of the same floats.");
  app.add_option("--elements", options.elements, "floats (default: 16777216)")->check(CLI::Range(256, 1 << 28));
  app.add_option("--rounds", options.rounds, "turns, of which the best counts (default: 7)")
      ->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const Result<CodecReport> report = measure_codecs(options);
  if (!report) return failed(report.error());
  print(*report, options);
  return 0;
}
