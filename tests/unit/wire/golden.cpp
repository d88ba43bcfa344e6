#include "golden.h"

namespace motley::wire::golden {
namespace {

constexpr std::uint64_t kPass = 0x0100000000000005;
constexpr std::uint64_t kFence = 0x0000000200000007;

std::vector<std::uint8_t> octets(std::string_view text) { return {text.begin(), text.end()}; }

// Of the right length; no point of the curve.
std::vector<std::uint8_t> share(std::uint8_t filler) {
  std::vector<std::uint8_t> out(kShareBytes, filler);
  out.front() = 4;
  return out;
}

Ready ready() {
  Ready out;
  LayoutEntry weight;
  weight.name = "conv1.weight";
  weight.shape = {32, 1, 3, 3};
  weight.group = 1;
  LayoutEntry mean;
  mean.name = "bn.running_mean";
  mean.shape = {32};
  mean.kind = TensorKind::running_mean;
  mean.momentum = 0.1F;
  LayoutEntry counter;
  counter.name = "bn.num_batches_tracked";
  counter.dtype = DType::i64;
  counter.kind = TensorKind::counter;
  LayoutEntry tied;
  tied.name = "tied";
  tied.shape = {0};
  tied.kind = TensorKind::alias;
  tied.alias_of = "conv1.weight";
  LayoutEntry mask;
  mask.name = "mask";
  mask.shape = {300};
  mask.dtype = DType::boolean;
  mask.kind = TensorKind::frozen;
  mask.content_hash = 0xfedcba9876543210;
  out.layout = {weight, mean, counter, tied, mask};
  out.train_fingerprint = "60000x28x28:u8:12ab";
  out.test_fingerprint = "10000x28x28:u8:34cd";
  out.fixed_seconds = 0.001953125;
  out.wire_seconds = {9.3132257461547852e-10, 0.25};
  out.seconds_per_sample = 0.0004;
  out.script = "loss()\t#12ab\nw\t=0.5\n";
  out.numbers = 0xfedcba9876543211;
  return out;
}

Hello hello() {
  Hello out;
  out.protocol = 1;
  out.software = "motley 0.1.0";
  out.name = "laptop/cpu";
  out.machine = "laptop";
  out.device = "cpu";
  out.device_description = "AMD Ryzen\xE2\x84\xA2 7, 8 threads";
  out.token_id = 0x8877665544332211;
  out.features = {"int8", "bf16"};
  return out;
}

Finish finish() {
  Finish out;
  out.pass = 0x0200000000000001;
  out.lease = 10;
  out.first = 31;
  out.count = 1000;
  out.correct = 913;
  out.weight = 1000;
  out.loss_sum = 0.1;
  out.compute_seconds = 4.9e-324;
  out.wait_seconds = -0.0;
  out.micro_batch = 256;
  out.scores = {913, -0.5};
  out.residual = 0.25;
  out.sent_lease = 9;
  out.sent_bytes = 1234567;
  out.sent_seconds = 0.375;
  out.probe = {0, 0, 0x80, 0x3f};
  return out;
}

}  // namespace

std::vector<Named> messages() {
  using namespace std::string_view_literals;
  RunSpec spec;
  spec.config = "[train]\nsteps = 100\n";
  spec.script_sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  spec.script_bytes = 4294967296;
  return {
      {"hello", hello()},
      {"proof", Proof{{0, 1, 2, 3, 254, 255}}},
      {"proof_reply", ProofReply{{255, 0}}},
      {"run_spec", spec},
      {"ready", ready()},
      {"admitted", Admitted{3, kFence}},
      {"attach", Attach{kFence, octets("0123456789abcdef0123456789abcdef"), 1, 3}},
      {"synced", Synced{128}},
      {"refresh", Refresh{300}},
      {"pass_opened", PassOpened{kPass, 5, 1, 256, 256}},
      {"grant", Grant{kPass, 9, 5, 1, 59904, 32, 96, 64, true, 2, true, 3, 30, {{0, 60, 6}, {1, 59904, 90}}, 15}},
      {"trim", Trim{kPass, 9, 64, 2}},
      {"cancel", Cancel{kPass, 18446744073709551615U}},
      {"progress", Progress{kPass, 9, 32, 64, 2}},
      {"begin", Begin{kPass, 9, 32, 64, 64, 147.3891235, 7}},
      {"finish", finish()},
      {"taken", Taken{kPass, 9, {0, 130}}},
      {"pass_closed", PassClosed{kPass, 6}},
      {"yield", Yield{}},
      {"failed", Failed{kPass, 9, "out of memory at micro-batch 1"}},
      {"heartbeat", Heartbeat{1700000000000000000, 1, 9}},
      {"bye", Bye{"model", "conv2.weight: [64, 32, 3, 3]", "conv2.weight: [64, 16, 3, 3]", "use the same model file"}},
      {"state", State{2, 300000, 262144, {0, 128, 255}}},
      {"want", Want{2, octets("0123456789abcdef0123456789abcdef")}},
      {"offered", Offered{2, octets("fedcba9876543210fedcba9876543210"), 4096, 3}},
      {"pair", Pair{1, "laptop", share(2)}},
      {"pair_share", PairShare{"desktop", share(3)}},
      {"pair_confirm", PairConfirm{octets("0123456789abcdef0123456789abcdef")}},
      {"paired", Paired{octets("fedcba9876543210fedcba9876543210"), "motley1.AbCd-_"}},
  };
}

}  // namespace motley::wire::golden
