#pragma once
// Control messages: protobuf wire format, specified by docs/formats/control.proto, one `Control` envelope a frame.
// Unknown fields are ignored; an unknown message kind is an error that names its number.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/batch_plan.h"
#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"

namespace motley::wire {

struct Hello {  // worker -> coordinator, first frame of a control connection
  std::uint32_t protocol = 0;
  std::string software;  // "motley 0.1.0"
  std::string name;      // of the worker: "laptop/cpu"
  std::string machine;
  std::string device;  // "cpu", "cuda:0", "mps"
  std::string device_description;
  std::uint64_t token_id = 0;
  std::vector<std::string> features;
  bool operator==(const Hello&) const = default;
};
struct Proof {
  std::vector<std::uint8_t> mac;
  bool operator==(const Proof&) const = default;
};
struct ProofReply {
  std::vector<std::uint8_t> mac;
  bool operator==(const ProofReply&) const = default;
};
struct RunSpec {                   // coordinator -> worker: what it needs besides the script
  std::string config;              // the run's canonical TOML
  std::string script_sha256;       // lower-case hex of the script's files; empty for who did not ask for them
  std::uint64_t script_bytes = 0;  // of these; they follow in blob frames
  bool operator==(const RunSpec&) const = default;
};
struct Ready {  // worker -> coordinator
  std::vector<LayoutEntry> layout;
  std::string train_fingerprint;  // of the data sets: whatever tells them from others
  std::string test_fingerprint;
  double fixed_seconds = 0, seconds_per_sample = 0;  // of its device with this model, as an earlier run had it; 0: new
  std::vector<double> wire_seconds{};  // a byte, of its computing: what numbers on the wire cost; where a codec is open
  std::string script{};                // what runs of its script (wire/script.h); empty: not said
  std::uint64_t numbers = 0;           // a hash of random numbers that its device draws from a fixed seed; 0: not said
  bool operator==(const Ready&) const = default;
};
struct Admitted {
  std::uint64_t worker = 0;
  std::uint64_t fence = 0;
  bool operator==(const Admitted&) const = default;
};
struct Attach {
  std::uint64_t fence = 0;
  std::vector<std::uint8_t> mac;
  std::uint32_t number = 0, count = 0;  // which of how many data connections, from 0; count 0 is 1
  bool operator==(const Attach&) const = default;
};
struct Synced {
  std::uint64_t version = 0;
  bool operator==(const Synced&) const = default;
};  // worker: holds all of it
struct Refresh {
  std::uint64_t version = 0;  // what it held of it was not what the coordinator holds; 0: chunks did not come
  bool operator==(const Refresh&) const = default;
};  // worker: send all weights
struct PassOpened {
  std::uint64_t pass = 0, version = 0, epoch = 0, first = 0, count = 0;
  bool operator==(const PassOpened&) const = default;
};
/// Positions [first, first + count) of the pass. For train passes of `epoch`, position p of the pass is position
/// `pass_first + p` of the epoch's sample order. `count` is the ceiling; `limit` of them are wanted so far (0: all).
/// `from_end`: computed from the last position downwards, so that the limit counts from there.
struct Grant {
  std::uint64_t pass = 0, lease = 0, version = 0, epoch = 0, pass_first = 0, first = 0, count = 0, limit = 0;
  bool from_end = false;
  std::uint32_t codec = 0;         // CodecId of its chunks of large tensors
  bool feedback = false;           // what the codec leaves out goes into the worker's next contribution
  std::uint64_t state = 0;         // number of the State it is computed with; 0: there is none
  std::uint64_t local_steps = 0;   // so many steps of the worker's own optimizer; 0: a sum of gradients
  std::vector<StepRange> spans{};  // then: the positions, in their order; none: [first, first + count) of the pass
  std::uint64_t ahead = 0;         // of these steps so many at the most begin before the weights are here
  bool operator==(const Grant&) const = default;
};
/// `count` of the lease's positions are wanted from now on, more or fewer than before; `number` counts its Trims.
struct Trim {
  std::uint64_t pass = 0, lease = 0, count = 0, number = 0;
  bool operator==(const Trim&) const = default;
};
struct Cancel {
  std::uint64_t pass = 0, lease = 0;
  bool operator==(const Cancel&) const = default;
};
/// `limit` > 0 answers the Trim `trim`: so many positions will be computed at the most.
struct Progress {
  std::uint64_t pass = 0, lease = 0, done = 0, limit = 0, trim = 0;
  bool operator==(const Progress&) const = default;
};
struct Begin {
  std::uint64_t pass = 0, lease = 0, first = 0, count = 0;
  double weight = 0, loss_sum = 0;
  std::uint64_t ahead = 0;  // local steps that were made before the weights were used
  bool operator==(const Begin&) const = default;
};
/// After the last chunk of a train lease, or the result of an evaluate lease.
struct Finish {
  std::uint64_t pass = 0, lease = 0, first = 0, count = 0, correct = 0;
  double weight = 0, loss_sum = 0, compute_seconds = 0, wait_seconds = 0;
  std::uint32_t micro_batch = 0;  // samples of a forward pass on that device
  std::vector<double> scores;
  double residual = 0;  // what the codec left of the newest contribution: the norm of that over the contribution's
  // Of the contribution that was taken last: the part, to its end, that waited for the wire, and for how long.
  std::uint64_t sent_lease = 0, sent_bytes = 0;
  double sent_seconds = 0;
  std::vector<std::uint8_t> probe;  // of a probe: its numbers, as float32
  bool operator==(const Finish&) const = default;
};
struct Taken {
  std::uint64_t pass = 0, lease = 0;
  /// Leases with feedback: bit c % 8 of byte c / 8 is set where chunk c does not count. Shorter: the rest counts.
  std::vector<std::uint8_t> discarded;
  bool operator==(const Taken&) const = default;
};
struct PassClosed {
  std::uint64_t pass = 0, version = 0;
  bool operator==(const PassClosed&) const = default;
};  // version held from now on
struct Yield {
  bool operator==(const Yield&) const = default;
};  // worker: no more leases, please; leaves when this one is done
struct Failed {
  std::uint64_t pass = 0, lease = 0;
  std::string message;
  bool operator==(const Failed&) const = default;
};  // worker could not compute it
/// `lease`: what the worker computes now; 0: nothing, or weights are awaited.
struct Heartbeat {
  std::uint64_t sent_ns = 0, echo_ns = 0, lease = 0;
  bool operator==(const Heartbeat&) const = default;
};
struct Bye {         // either side, before it closes
  std::string code;  // "done", "leave", "lost", "wrong-token", "protocol", "model", "data", "run", "full", …
  std::string expected, found, hint;
  bool operator==(const Bye&) const = default;
};

/// A piece of what the loss gets beside the samples: `data` from `offset` on of `bytes` in all.
struct State {
  std::uint64_t number = 0, bytes = 0, offset = 0;
  std::vector<std::uint8_t> data;
  bool operator==(const State&) const = default;
};

struct Want {
  std::uint64_t offer = 0;           // which one's manifest; 0: content by its hash
  std::vector<std::uint8_t> sha256;  // of a block or a manifest
  bool operator==(const Want&) const = default;
};
struct Offered {
  std::uint64_t offer = 0;
  std::vector<std::uint8_t> sha256;  // of its manifest; empty: there is no such offer
  std::uint64_t bytes = 0;           // of its manifest
  std::uint64_t offers = 0;          // that there are so far
  bool operator==(const Offered&) const = default;
};

// A machine without a token and a head that shows a code: docs/formats/pairing.md. Before Hello, in frames of run 0.
struct Pair {  // joiner -> head
  std::uint32_t protocol = 0;
  std::string name;                 // of the machine
  std::vector<std::uint8_t> share;  // SPAKE2's pA
  bool operator==(const Pair&) const = default;
};
struct PairShare {  // head -> joiner
  std::string name;
  std::vector<std::uint8_t> share;  // pB
  bool operator==(const PairShare&) const = default;
};
struct PairConfirm {  // joiner -> head
  std::vector<std::uint8_t> mac;
  bool operator==(const PairConfirm&) const = default;
};
struct Paired {  // head -> joiner
  std::vector<std::uint8_t> mac;
  std::string token;
  bool operator==(const Paired&) const = default;
};

using Message = std::variant<Hello, Proof, ProofReply, RunSpec, Ready, Admitted, Attach, Synced, Refresh, PassOpened,
                             Grant, Trim, Cancel, Progress, Begin, Finish, Taken, PassClosed, Yield, Failed, Heartbeat,
                             Bye, Want, Offered, State, Pair, PairShare, PairConfirm, Paired>;

SharedBytes encode(const Message& message);
Result<Message> decode(std::span<const std::byte> bytes);
/// "Grant", "Bye", …
std::string_view name_of(const Message& message) noexcept;
/// For people: "expected …, found …", or the one of them that is there.
std::string reason_of(const Bye& bye);

}  // namespace motley::wire
