// Whatever is written comes back; whatever is cut off or flipped is noticed.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "../../unit/store/temporary.h"
#include "store/ledger.h"
#include "store/ledger_record.h"
#include "store/safetensors.h"

namespace motley::store {
namespace {

using test::TemporaryDirectory;

rc::Gen<LedgerStep> any_step() {
  return rc::gen::exec([] {
    LedgerStep step;
    step.step = *rc::gen::inRange<std::uint64_t>(0, kLedgerStepMax);
    step.incarnation = *rc::gen::arbitrary<std::uint64_t>();
    step.weight = *rc::gen::arbitrary<int>() / 8.0;
    step.loss_sum = *rc::gen::arbitrary<int>() / 8.0;
    const auto count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) {
      step.ranges.push_back({*rc::gen::inRange<std::uint64_t>(0, kLedgerSamplesMax),
                             *rc::gen::inRange<std::uint64_t>(0, kLedgerSamplesMax),
                             *rc::gen::element<std::string>("desk/cuda:0", "laptop/mps", "", "w")});
    }
    return step;
  });
}

RC_GTEST_PROP(StoreProperty, LedgerStepsComeBack, ()) {
  const std::vector<std::string> workers{"desk/cuda:0", "laptop/mps", "", "w"};
  const LedgerStep step = *any_step();
  std::vector<std::uint64_t> numbers;
  for (const LedgerRange& range : step.ranges) {
    const auto found = std::find(workers.begin(), workers.end(), range.worker);
    numbers.push_back(static_cast<std::uint64_t>(found - workers.begin()));
  }
  const std::string payload = encode(step, numbers);
  RC_ASSERT(decode_step(payload, workers) == step);
  for (std::size_t size = 0; size < payload.size(); ++size) RC_ASSERT(!decode_step(payload.substr(0, size), workers));
  RC_ASSERT(!decode_step(payload + "x", workers));
}

// Steps and rollbacks in any order, cut anywhere: the history of a prefix of the records, or no header yet.
RC_GTEST_PROP(StoreProperty, ACutLedgerIsTheHistoryOfAPrefix, ()) {
  const std::string header = encode(LedgerHeader{1, 2, 1000, 10, "data"});
  std::string file(kLedgerMagic);
  append_record(file, file.size(), RecordType::header, header);
  append_record(file, file.size(), RecordType::worker, "w");
  std::vector<std::size_t> ends{file.size()};
  std::vector<std::vector<std::uint64_t>> histories{{}};
  const int records = *rc::gen::inRange(1, 8);
  for (int i = 0; i < records; ++i) {
    const auto number = *rc::gen::inRange<std::uint64_t>(0, 6);
    std::vector<std::uint64_t> history = histories.back();
    if (*rc::gen::weightedElement<bool>({{3, true}, {1, false}})) {
      const std::vector<std::uint64_t> workers{0};
      append_record(file, file.size(), RecordType::step, encode(LedgerStep{number, 1, 1, 1, {{0, 10, "w"}}}, workers));
      history.push_back(number);
      std::sort(history.begin(), history.end());
    } else {
      append_record(file, file.size(), RecordType::rollback, encode(LedgerRollback{number, 2}));
      std::erase_if(history, [&](std::uint64_t step) { return step >= number; });
    }
    ends.push_back(file.size());
    histories.push_back(history);
  }
  for (std::size_t size = 0; size <= file.size(); ++size) {
    const auto parsed = parse_ledger(std::string_view(file).substr(0, size), "cut");
    RC_ASSERT(parsed.ok());
    std::size_t whole = 0;
    while (whole + 1 < ends.size() && ends[whole + 1] <= size) ++whole;
    std::vector<std::uint64_t> steps;
    for (const LedgerStep& step : parsed->steps) steps.push_back(step.step);
    if (size >= ends[0]) RC_ASSERT(steps == histories[whole]);
    if (size < ends[0]) RC_ASSERT(steps.empty());
    RC_ASSERT(parsed->intact_bytes <= size);
  }
}

// The audit against counting every position one by one.
RC_GTEST_PROP(StoreProperty, TheAuditCountsWhatCountingCounts, ()) {
  const auto samples = *rc::gen::inRange<std::uint64_t>(1, 30);
  const auto batch = *rc::gen::inRange<std::uint64_t>(1, 12);
  const std::uint64_t per_epoch = (samples + batch - 1) / batch;
  Ledger ledger{{1, 2, samples, batch, "data"}, {}, 0, false};
  std::uint64_t missing = 0, duplicate = 0, used = 0;
  const auto steps = *rc::gen::inRange<std::uint64_t>(0, 8);
  std::uint64_t last = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::uint64_t first = step % per_epoch * batch;
    const std::uint64_t size = std::min(batch, samples - first);
    if (*rc::gen::inRange(0, 4) == 0) {
      last += size;  // skipped; missing if another one follows
      continue;
    }
    missing += last;
    last = 0;
    LedgerStep entry{step, 1, 1, 1, {}};
    std::vector<int> times(static_cast<std::size_t>(batch) * 3, 0);
    const int ranges = *rc::gen::inRange(0, 4);
    for (int i = 0; i < ranges; ++i) {
      const auto at = *rc::gen::inRange<std::uint64_t>(0, batch + 1);
      const auto count = *rc::gen::inRange<std::uint64_t>(0, batch + 1);
      entry.ranges.push_back({at, count, "w"});
      for (std::uint64_t p = at; p < at + count; ++p) ++times[static_cast<std::size_t>(p)];
    }
    for (std::uint64_t p = 0; p < times.size(); ++p) {
      const auto count = static_cast<std::uint64_t>(times[static_cast<std::size_t>(p)]);
      if (p >= size) {
        duplicate += count;
      } else {
        missing += count == 0 ? 1 : 0;
        used += count > 0 ? 1 : 0;
        duplicate += count > 1 ? count - 1 : 0;
      }
    }
    ledger.steps.push_back(entry);
  }
  const Audit result = audit(ledger);
  RC_ASSERT(result.missing == missing);
  RC_ASSERT(result.duplicate == duplicate);
  RC_ASSERT(result.samples == used);
  RC_ASSERT(result.findings.empty() == (missing == 0 && duplicate == 0));
}

RC_GTEST_PROP(StoreProperty, SafetensorsComeBack, (std::map<std::string, std::string> metadata)) {
  const TemporaryDirectory scratch;
  const auto plain = [](std::string text) {
    for (char& c : text) c = static_cast<char>(c & 0x7f);
    return text;
  };
  Safetensors content;
  for (const auto& [key, value] : metadata) content.metadata[plain(key)] = plain(value);
  const int tensors = *rc::gen::inRange(0, 5);
  std::map<std::string, std::string> expected;
  for (int i = 0; i < tensors; ++i) {
    std::string name = "t";
    name += std::to_string(i);  // in one expression GCC 12 warns of an overlap that cannot be
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 5);
    const auto dtype = *rc::gen::element(DType::f32, DType::bf16, DType::f64, DType::boolean);
    const std::size_t width = dtype == DType::f32 ? 4 : dtype == DType::bf16 ? 2 : dtype == DType::f64 ? 8 : 1;
    const std::string bytes(static_cast<std::size_t>(rows) * 3 * width, static_cast<char>('a' + i));
    const SharedBytes all = SharedBytes::copy_of(std::as_bytes(std::span(bytes)));
    const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
    content.tensors.push_back({name, dtype, {rows, 3}, {all.slice(0, cut), all.slice(cut, bytes.size() - cut)}});
    expected[name] = bytes;
  }
  RC_ASSERT(write_safetensors(scratch.path() / "f", content).ok());
  const auto back = read_safetensors(scratch.path() / "f");
  RC_ASSERT(back.ok());
  RC_ASSERT(back->metadata == content.metadata);
  RC_ASSERT(back->tensors.size() == expected.size());
  for (const TensorView& tensor : back->tensors) {
    const auto bytes = tensor.parts.at(0).bytes();
    RC_ASSERT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == expected.at(tensor.name));
  }
}

// A writer killed with no warning: whatever it reported as appended is there.
TEST(StoreKill, NothingReportedIsLostWhenTheWriterIsKilled) {
  const TemporaryDirectory scratch;
  const auto file = scratch.path() / "ledger";
  for (const int wanted : {1, 20, 100}) {
    std::filesystem::remove(file);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = LedgerWriter::open(file, {1, 2, 1000, 10, "data"});
      for (std::uint64_t step = 0; writer && writer->append(LedgerStep{step, 1, 1, 1, {{0, 10, "w"}}}); ++step)
        if (::write(ends[1], "x", 1) != 1) break;
      ::_exit(1);
    }
    ::close(ends[1]);
    char reported = 0;
    for (int i = 0; i < wanted; ++i) ASSERT_EQ(::read(ends[0], &reported, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    const auto ledger = read_ledger(file);
    ASSERT_TRUE(ledger) << ledger.error().message;
    EXPECT_GE(ledger->steps.size(), static_cast<std::size_t>(wanted));
    EXPECT_TRUE(audit(*ledger).findings.empty());
  }
}

}  // namespace
}  // namespace motley::store
