#include "store/ledger.h"

#include <map>
#include <optional>
#include <utility>

#include "store/file.h"
#include "store/ledger_record.h"
#include "wire/fingerprint.h"

namespace motley::store {
namespace {

constexpr std::size_t kPendingBytesMax = 64 << 20;

/// Empty where the run of `here` may go on.
std::optional<Error> different(const std::filesystem::path& file, const LedgerHeader& there, const LedgerHeader& here) {
  std::string what;
  const auto compare = [&what](const char* field, const auto& expected, const auto& found) {
    if (expected == found || !what.empty()) return;
    what = std::string(field) + " is " + std::to_string(expected) + " there and " + std::to_string(found) + " here";
  };
  compare("the run", there.run, here.run);
  compare("the seed", there.seed, here.seed);
  compare("the number of training samples", there.samples, here.samples);
  compare("the global batch", there.global_batch, here.global_batch);
  compare("train.drop_last", there.drop_last, here.drop_last);
  compare("the order without shuffling (0: shuffled)", there.in_order, here.in_order);
  const auto data = wire::fingerprint_difference(there.train_fingerprint, here.train_fingerprint);
  if (data && what.empty())
    what = "the training data is " + in_quotes(data->expected) + " there and " + in_quotes(data->found) + " here";
  if (what.empty()) return std::nullopt;
  return Error{ErrorCode::mismatch, file.string() + " belongs to another run: " + what,
               "resume with the configuration and data it was started with, or choose a new directory with --run"};
}

}  // namespace

struct LedgerWriter::Impl {
  File file;
  std::uint64_t written = 0;  // bytes of the file that hold whole records
  std::string pending;        // encoded, not yet in the file: what a full disk has kept back
  bool unsynced = false;      // records since the last sync mark
  bool ragged = false;        // the file may go on behind `written`: a failed write that could not be cut off yet
  std::map<std::string, std::uint64_t, std::less<>> workers;

  void add(RecordType type, std::string_view payload) {
    append_record(pending, written + pending.size(), type, payload);
  }

  // Whoever is new gets a record.
  std::vector<std::uint64_t> numbers_of(const std::vector<LedgerRange>& ranges) {
    std::vector<std::uint64_t> numbers;
    numbers.reserve(ranges.size());
    for (const LedgerRange& range : ranges) {
      const auto [known, is_new] = workers.emplace(range.worker, workers.size());
      if (is_new) add(RecordType::worker, range.worker);
      numbers.push_back(known->second);
    }
    return numbers;
  }

  // A record is in the file whole or not at all: what a failed write left of it is cut off, and it stays pending, so
  // that a ledger on a disk that was full for a while has no gaps.
  Status flush() {
    if (pending.empty()) return {};
    if (Status cut = cut_off(); !cut) return cut;
    if (Status done = file.write(std::as_bytes(std::span(pending))); !done) {
      ragged = true;
      static_cast<void>(cut_off());  // tried again before the next write
      return done;
    }
    written += pending.size();
    pending.clear();
    return {};
  }

  Status cut_off() {
    if (!ragged) return {};
    if (Status done = file.truncate(written); !done) return done;
    ragged = false;
    return {};
  }

  Status append(RecordType type, std::string_view payload) {
    if (pending.size() + payload.size() > kPendingBytesMax || payload.size() > kRecordPayloadMax) {
      return Error{ErrorCode::disk_full, file.path().string() + ": 64 MiB of records wait for a disk that takes none",
                   "free space on that disk"};
    }
    add(type, payload);
    unsynced = true;
    return flush();
  }
};

Result<LedgerWriter> LedgerWriter::open(const std::filesystem::path& file, const LedgerHeader& header) {
  const std::string encoded = encode(header);
  if (!decode_header(encoded)) {
    return Error{ErrorCode::input,
                 "a ledger needs 1 to 2^40 samples, a global batch of 1 to 2^40 and a fingerprint of at "
                 "most 4096 bytes; found " +
                     std::to_string(header.samples) + " samples, a batch of " + std::to_string(header.global_batch),
                 "check train.global_batch and the data set"};
  }
  auto opened = File::open(file, File::Mode::append);
  if (!opened) return std::move(opened).error();
  auto content = read_whole_file(file, kLedgerBytesMax);
  if (!content) return std::move(content).error();
  auto parsed = parse_ledger(*content, file.string());
  if (!parsed) return std::move(parsed).error();
  if (parsed->has_header) {
    if (auto error = different(file, parsed->header, header)) return *std::move(error);
  }

  auto impl = std::make_unique<Impl>();
  impl->file = std::move(*opened);
  impl->written = parsed->has_header ? parsed->intact_bytes : 0;
  for (std::uint64_t i = 0; i < parsed->workers.size(); ++i) {
    impl->workers.emplace(parsed->workers[static_cast<std::size_t>(i)], i);
  }
  if (impl->written < content->size()) {
    if (Status done = impl->file.truncate(impl->written); !done) return std::move(done).error();
  }
  if (!parsed->has_header) {
    impl->pending = kLedgerMagic;
    impl->add(RecordType::header, encoded);
    impl->unsynced = true;
    if (Status done = impl->flush(); !done) return std::move(done).error();
    if (Status done = sync_directory(std::filesystem::absolute(file).parent_path()); !done) {
      return std::move(done).error();
    }
  }
  return LedgerWriter(std::move(impl));
}

// A step that is there has all that counted in it: late records come before it.
Status LedgerWriter::append(const LedgerStep& step) {
  const auto refuse = [](const std::string& what) { return Error{ErrorCode::internal, "ledger: " + what, ""}; };
  if (step.step > kLedgerStepMax) return refuse("step " + std::to_string(step.step) + " is beyond 2^40");
  const auto sound = [&](const std::vector<LedgerRange>& ranges) -> Status {
    for (const LedgerRange& range : ranges) {
      if (range.worker.size() > kLedgerNameMax) return refuse("a worker's name has more than 4096 bytes");
      if (range.first > kLedgerSamplesMax || range.count > kLedgerSamplesMax) return refuse("a range is beyond 2^40");
    }
    return {};
  };
  if (Status fits = sound(step.ranges); !fits) return fits;
  for (const LedgerLate& late : step.late)
    if (Status fits = sound(late.ranges); !fits) return fits;
  for (const LedgerLate& late : step.late) {
    const std::vector<std::uint64_t> workers = impl_->numbers_of(late.ranges);
    if (Status done = impl_->append(RecordType::late, encode(late, workers)); !done) return done;
  }
  const std::vector<std::uint64_t> workers = impl_->numbers_of(step.ranges);
  return impl_->append(RecordType::step, encode(step, workers));
}

Status LedgerWriter::append(const LedgerRollback& rollback) {
  return impl_->append(RecordType::rollback, encode(rollback));
}

Status LedgerWriter::append(const BatchChange& change) { return impl_->append(RecordType::batch, encode(change)); }

Status LedgerWriter::sync() {
  if (Status done = impl_->flush(); !done) return done;
  if (!impl_->unsynced) return {};
  if (Status done = impl_->file.sync(); !done) return done;
  // Tells readers that damage before this point is damage, and no tail that a power failure tore.
  impl_->add(RecordType::synced, {});
  impl_->unsynced = false;
  return impl_->flush();
}

LedgerWriter::LedgerWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LedgerWriter::LedgerWriter(LedgerWriter&&) noexcept = default;
LedgerWriter& LedgerWriter::operator=(LedgerWriter&&) noexcept = default;
LedgerWriter::~LedgerWriter() = default;

}  // namespace motley::store
