#pragma once
// Records of the ledger as bytes, docs/formats/ledger.md. Internal to store/. Pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "motley/result.h"
#include "store/ledger.h"

namespace motley::store {

inline constexpr std::string_view kLedgerMagic = "MTLEDGR1";
inline constexpr std::uint64_t kLedgerBytesMax = std::uint64_t{16} << 30;
inline constexpr std::size_t kRecordPayloadMax = 16 << 20;
inline constexpr std::size_t kRecordOverhead = 9;  // length, type, checksum
inline constexpr std::size_t kLedgerNameMax = 4096;
inline constexpr std::uint64_t kLedgerSamplesMax = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kLedgerStepMax = std::uint64_t{1} << 40;

enum class RecordType : std::uint8_t {
  header = 1,
  worker = 2,
  step = 3,
  rollback = 4,
  synced = 5,
  batch = 6,
  late = 7
};

/// Appends one record; `offset` is where it will lie in the file and enters the checksum.
void append_record(std::string& out, std::uint64_t offset, RecordType type, std::string_view payload);

struct Record {
  std::uint8_t type = 0;
  std::string_view payload;
  std::uint64_t end = 0;  // offset of the next
};
/// The record at `offset` of a file that begins with `file`; nothing if no whole, intact one is there.
std::optional<Record> record_at(std::string_view file, std::uint64_t offset);
/// The first intact `synced` record behind `offset`: proof that what lies at `offset` was once durable.
std::optional<std::uint64_t> synced_after(std::string_view file, std::uint64_t offset);

std::string encode(const LedgerHeader& header);
std::string encode(const LedgerRollback& rollback);
std::string encode(const BatchChange& change);
/// `workers[i]` is the number in the file of the worker of late.ranges[i].
std::string encode(const LedgerLate& late, std::span<const std::uint64_t> workers);
/// `workers[i]` is the number in the file of the worker of step.ranges[i].
std::string encode(const LedgerStep& step, std::span<const std::uint64_t> workers);

// nullopt: the payload makes no sense.
std::optional<LedgerHeader> decode_header(std::string_view payload);
std::optional<LedgerRollback> decode_rollback(std::string_view payload);
std::optional<BatchChange> decode_batch(std::string_view payload);
std::optional<LedgerLate> decode_late(std::string_view payload, std::span<const std::string> workers);
std::optional<LedgerStep> decode_step(std::string_view payload, std::span<const std::string> workers);

/// A file taken apart, before rollbacks are applied.
struct LedgerFile {
  LedgerHeader header;
  bool has_header = false;
  std::vector<std::string> workers;
  std::vector<LedgerStep> steps;           // effective
  std::vector<LedgerLate> late;            // likewise; of steps that are not among them yet
  std::vector<BatchChange> batch_changes;  // likewise
  std::uint64_t rollbacks = 0;
  std::uint64_t intact_bytes = 0;  // up to here everything is whole
};
/// Fails with ErrorCode::input where a record that was durable is damaged, naming `name` and the offset.
Result<LedgerFile> parse_ledger(std::string_view file, const std::string& name);

}  // namespace motley::store
