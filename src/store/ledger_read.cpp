#include <algorithm>
#include <utility>

#include "store/file.h"
#include "store/ledger.h"
#include "store/ledger_record.h"

namespace motley::store {
namespace {

Error damaged(const std::string& name, std::uint64_t offset, const std::string& why) {
  return {ErrorCode::input, name + ": damaged at byte " + std::to_string(offset) + ": " + why,
          "restore the file from a copy; what follows this byte cannot be trusted"};
}

// Applies one record; the reason when it makes no sense, else empty.
std::string apply(LedgerFile& ledger, const Record& record) {
  if (record.type != static_cast<std::uint8_t>(RecordType::header) && !ledger.has_header) {
    return "a record before the header";
  }
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::header: {
      auto header = decode_header(record.payload);
      if (!header || ledger.has_header) return "a header of another version, out of bounds, or a second one";
      ledger.header = std::move(*header);
      ledger.has_header = true;
      return {};
    }
    case RecordType::worker: {
      if (record.payload.size() > kLedgerNameMax) return "a worker's name of more than 4096 bytes";
      ledger.workers.emplace_back(record.payload);
      return {};
    }
    case RecordType::step: {
      auto step = decode_step(record.payload, ledger.workers);
      if (!step) return "a step record that makes no sense";
      for (LedgerLate& late : ledger.late)
        if (late.at == step->step) step->late.push_back(std::move(late));
      ledger.late.clear();
      ledger.steps.push_back(std::move(*step));
      return {};
    }
    case RecordType::late: {
      auto late = decode_late(record.payload, ledger.workers);
      if (!late) return "a late record that makes no sense";
      ledger.late.push_back(std::move(*late));
      return {};
    }
    case RecordType::rollback: {
      const auto rollback = decode_rollback(record.payload);
      if (!rollback) return "a rollback record that makes no sense";
      ledger.late.clear();  // of a step that was not written any more
      std::erase_if(ledger.steps, [&](const LedgerStep& step) { return step.step >= rollback->to_version; });
      std::erase_if(ledger.batch_changes,
                    [&](const BatchChange& change) { return change.first_step >= rollback->to_version; });
      ++ledger.rollbacks;
      return {};
    }
    case RecordType::batch: {
      const auto change = decode_batch(record.payload);
      const bool later =
          ledger.batch_changes.empty() || (change && change->first_step > ledger.batch_changes.back().first_step);
      if (!change || !later) return "a batch record that makes no sense";
      ledger.batch_changes.push_back(*change);
      return {};
    }
    case RecordType::synced:
      return record.payload.empty() ? std::string() : "a sync record with content";
  }
  return "a record of the unknown type " + std::to_string(record.type) + "; a newer motley may have written it";
}

}  // namespace

Result<LedgerFile> parse_ledger(std::string_view file, const std::string& name) {
  LedgerFile ledger;
  const std::string_view magic = file.substr(0, kLedgerMagic.size());
  if (magic != kLedgerMagic.substr(0, magic.size())) {
    return Error{ErrorCode::input, name + " is no ledger: it begins with " + in_quotes(magic),
                 "give the run's directory"};
  }
  if (magic.size() < kLedgerMagic.size()) return ledger;  // not even begun
  ledger.intact_bytes = kLedgerMagic.size();
  while (ledger.intact_bytes < file.size()) {
    const auto record = record_at(file, ledger.intact_bytes);
    if (!record) {
      // Data written since the last sync may be lost in part when the power fails; what was synced may not.
      if (const auto synced = synced_after(file, ledger.intact_bytes)) {
        return damaged(name, ledger.intact_bytes,
                       "a record fails its checksum, and byte " + std::to_string(*synced) + " says it was once whole");
      }
      break;
    }
    if (const std::string why = apply(ledger, *record); !why.empty()) return damaged(name, ledger.intact_bytes, why);
    ledger.intact_bytes = record->end;
  }
  std::sort(ledger.steps.begin(), ledger.steps.end(), [](const LedgerStep& a, const LedgerStep& b) {
    return std::pair(a.step, a.incarnation) < std::pair(b.step, b.incarnation);
  });
  return ledger;
}

Result<Ledger> read_ledger(const std::filesystem::path& file) {
  auto content = read_whole_file(file, kLedgerBytesMax);
  if (!content) return std::move(content).error();
  auto parsed = parse_ledger(*content, file.string());
  if (!parsed) return std::move(parsed).error();
  if (!parsed->has_header) {
    return Error{
        ErrorCode::input,
        file.string() + ": the header is missing or incomplete (" + std::to_string(content->size()) + " bytes)",
        "the run ended before its first step; start it again"};
  }
  Ledger ledger;
  ledger.header = std::move(parsed->header);
  ledger.steps = std::move(parsed->steps);
  ledger.batch_changes = std::move(parsed->batch_changes);
  ledger.rollbacks = parsed->rollbacks;
  ledger.torn = parsed->intact_bytes < content->size();
  return ledger;
}

}  // namespace motley::store
