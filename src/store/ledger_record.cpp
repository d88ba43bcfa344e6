#include "store/ledger_record.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/little_endian.h"

namespace motley::store {
namespace {

constexpr unsigned kDropLast = 1, kInOrder = 2;  // of a header's order
constexpr double kBatchRate = 1;                 // of a batch record: its factor on learning rates

constexpr std::uint64_t kFormatVersion = 1;
constexpr std::size_t kHeadBytes = 5;      // length u32, type u8
constexpr std::size_t kChecksumBytes = 4;  // crc32c u32
static_assert(kHeadBytes + kChecksumBytes == kRecordOverhead);

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
void put_fixed(std::string& out, T value) {
  std::array<std::byte, sizeof(T)> bytes{};
  store_le<T>(bytes.data(), value);
  for (const std::byte byte : bytes) out += static_cast<char>(byte);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_double(std::string& out, double value) { put_fixed(out, std::bit_cast<std::uint64_t>(value)); }

std::uint64_t zigzag(std::uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
std::uint64_t unzigzag(std::uint64_t coded) { return (coded >> 1) ^ (0 - (coded & 1)); }

// Takes fields off the front of a payload; after the first that is not there everything reads as 0 and ok() is false.
class Fields {
 public:
  explicit Fields(std::string_view rest) : rest_(rest) {}
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return ok_ && rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

  template <class T>
  T fixed() {
    if (!take(sizeof(T))) return 0;
    return load_le<T>(bytes_of(taken_).data());
  }
  double number() { return std::bit_cast<double>(fixed<std::uint64_t>()); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (!take(1)) return 0;
      const auto byte = static_cast<unsigned char>(taken_[0]);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string text() {
    const std::uint64_t length = varint();
    if (length > kLedgerNameMax || !take(static_cast<std::size_t>(length))) {
      ok_ = false;
      return {};
    }
    return std::string(taken_);
  }

 private:
  bool take(std::size_t count) {
    if (!ok_ || rest_.size() < count) return ok_ = false;
    taken_ = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  std::string_view rest_, taken_;
  bool ok_ = true;
};

std::uint32_t checksum(std::uint64_t offset, std::string_view head_and_payload) {
  std::array<std::byte, 8> place{};
  store_le<std::uint64_t>(place.data(), offset);
  return crc32c(bytes_of(head_and_payload), crc32c(place));
}

void put_ranges(std::string& out, std::span<const LedgerRange> ranges, std::span<const std::uint64_t> workers) {
  MOTLEY_ASSERT(workers.size() == ranges.size());
  put_varint(out, ranges.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    // Ranges follow each other in a sound step, so the difference to the end before is one byte.
    put_varint(out, zigzag(ranges[i].first - end));
    put_varint(out, ranges[i].count);
    put_varint(out, workers[i]);
    end = ranges[i].first + ranges[i].count;
  }
}

std::optional<std::vector<LedgerRange>> take_ranges(Fields& fields, std::span<const std::string> workers) {
  const std::uint64_t count = fields.varint();
  if (!fields.ok() || count > fields.left() / 3) return std::nullopt;
  std::vector<LedgerRange> ranges;
  ranges.reserve(static_cast<std::size_t>(count));
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    LedgerRange range;
    range.first = end + unzigzag(fields.varint());
    range.count = fields.varint();
    const std::uint64_t worker = fields.varint();
    const bool sound = range.first <= kLedgerSamplesMax && range.count <= kLedgerSamplesMax && worker < workers.size();
    if (!fields.ok() || !sound) return std::nullopt;
    range.worker = workers[static_cast<std::size_t>(worker)];
    end = range.first + range.count;
    ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace

void append_record(std::string& out, std::uint64_t offset, RecordType type, std::string_view payload) {
  MOTLEY_ASSERT(payload.size() <= kRecordPayloadMax);
  const std::size_t begin = out.size();
  put_fixed(out, static_cast<std::uint32_t>(payload.size()));
  out += static_cast<char>(type);
  out += payload;
  put_fixed(out, checksum(offset, std::string_view(out).substr(begin)));
}

std::optional<Record> record_at(std::string_view file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < kRecordOverhead) return std::nullopt;
  const std::string_view rest = file.substr(static_cast<std::size_t>(offset));
  const std::size_t length = load_le<std::uint32_t>(bytes_of(rest).data());
  if (length > kRecordPayloadMax || rest.size() - kRecordOverhead < length) return std::nullopt;
  const std::string_view covered = rest.substr(0, kHeadBytes + length);
  if (load_le<std::uint32_t>(bytes_of(rest).data() + covered.size()) != checksum(offset, covered)) return std::nullopt;
  return Record{static_cast<std::uint8_t>(rest[4]), covered.substr(kHeadBytes), offset + kRecordOverhead + length};
}

std::optional<std::uint64_t> synced_after(std::string_view file, std::uint64_t offset) {
  const std::string pattern{0, 0, 0, 0, static_cast<char>(RecordType::synced)};
  for (std::size_t at = file.find(pattern, static_cast<std::size_t>(offset)); at != std::string_view::npos;
       at = file.find(pattern, at + 1)) {
    if (record_at(file, at)) return at;
  }
  return std::nullopt;
}

std::string encode(const LedgerHeader& header) {
  std::string out;
  put_varint(out, kFormatVersion);
  put_fixed(out, header.run);
  put_fixed(out, header.seed);
  put_varint(out, header.samples);
  put_varint(out, header.global_batch);
  put_varint(out, header.train_fingerprint.size());
  out += header.train_fingerprint;
  const unsigned order = (header.drop_last ? kDropLast : 0U) | (header.in_order ? kInOrder : 0U);
  if (order != 0) put_varint(out, order);
  return out;
}

std::string encode(const LedgerRollback& rollback) {
  std::string out;
  put_varint(out, rollback.to_version);
  put_varint(out, rollback.incarnation);
  return out;
}

std::string encode(const BatchChange& change) {
  std::string out;
  put_varint(out, change.first_step);
  put_varint(out, change.batch);
  put_double(out, kBatchRate);
  return out;
}

std::string encode(const LedgerLate& late, std::span<const std::uint64_t> workers) {
  std::string out;
  put_varint(out, late.step);
  put_varint(out, late.at);
  put_ranges(out, late.ranges, workers);
  return out;
}

std::string encode(const LedgerStep& step, std::span<const std::uint64_t> workers) {
  std::string out;
  put_varint(out, step.step);
  put_varint(out, step.incarnation);
  put_double(out, step.weight);
  put_double(out, step.loss_sum);
  put_ranges(out, step.ranges, workers);
  if (step.gradient_norm) put_double(out, *step.gradient_norm);
  return out;
}

std::optional<LedgerHeader> decode_header(std::string_view payload) {
  Fields fields(payload);
  LedgerHeader header;
  if (fields.varint() != kFormatVersion) return std::nullopt;
  header.run = fields.fixed<std::uint64_t>();
  header.seed = fields.fixed<std::uint64_t>();
  header.samples = fields.varint();
  header.global_batch = fields.varint();
  header.train_fingerprint = fields.text();
  const bool ordered = fields.ok() && !fields.at_end();
  const std::uint64_t order = ordered ? fields.varint() : 0;
  if (ordered && (order == 0 || order > (kDropLast | kInOrder))) return std::nullopt;
  header.drop_last = (order & kDropLast) != 0;
  header.in_order = (order & kInOrder) != 0;
  const bool sound = header.samples > 0 && header.samples <= kLedgerSamplesMax && header.global_batch > 0 &&
                     header.global_batch <= kLedgerSamplesMax;
  if (!fields.at_end() || !sound) return std::nullopt;
  return header;
}

std::optional<LedgerRollback> decode_rollback(std::string_view payload) {
  Fields fields(payload);
  LedgerRollback rollback;
  rollback.to_version = fields.varint();
  rollback.incarnation = fields.varint();
  if (!fields.at_end()) return std::nullopt;
  return rollback;
}

std::optional<BatchChange> decode_batch(std::string_view payload) {
  Fields fields(payload);
  BatchChange change;
  change.first_step = fields.varint();
  change.batch = fields.varint();
  const bool known = fields.number() == kBatchRate;
  const bool sound = change.first_step > 0 && change.first_step <= kLedgerStepMax && change.batch > 0 &&
                     change.batch <= kLedgerSamplesMax && known;
  if (!fields.at_end() || !sound) return std::nullopt;
  return change;
}

std::optional<LedgerLate> decode_late(std::string_view payload, std::span<const std::string> workers) {
  Fields fields(payload);
  LedgerLate late;
  late.step = fields.varint();
  late.at = fields.varint();
  auto ranges = take_ranges(fields, workers);
  if (!ranges || !fields.at_end() || late.at > kLedgerStepMax || late.step >= late.at) return std::nullopt;
  late.ranges = std::move(*ranges);
  return late;
}

std::optional<LedgerStep> decode_step(std::string_view payload, std::span<const std::string> workers) {
  Fields fields(payload);
  LedgerStep step;
  step.step = fields.varint();
  step.incarnation = fields.varint();
  step.weight = fields.number();
  step.loss_sum = fields.number();
  auto ranges = take_ranges(fields, workers);
  if (!ranges || step.step > kLedgerStepMax) return std::nullopt;
  step.ranges = std::move(*ranges);
  if (!fields.at_end()) step.gradient_norm = fields.number();
  if (!fields.at_end()) return std::nullopt;
  return step;
}

}  // namespace motley::store
