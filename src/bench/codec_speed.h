#pragma once
// What codecs, deltas and the optimizer do on one core, beside a memcpy. One thread calls.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "motley/result.h"
#include "runtime/stop.h"

namespace motley::bench {

struct CodecOptions {
  std::size_t elements = std::size_t{1} << 24;
  std::uint32_t rounds = 7;
};

/// Gigabytes of fp32 a second; of deltas 0 where the codec has none.
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

/// The best of the rounds, in which all take turns. Errors: interrupted, memory.
Result<CodecReport> measure_codecs(const CodecOptions& options, const runtime::StopSource& stop);

}  // namespace motley::bench
