#pragma once
// The one table of field numbers: every control message, its number in the envelope, and its fields. The encoder, the
// decoder and the test that compares this table with docs/formats/control.proto all read it. Pure data.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "wire/field.h"
#include "wire/limits.h"
#include "wire/messages.h"

namespace motley::wire {

inline constexpr std::string_view kKindsKnown = "1 to 22, 25, 26 or 29 to 33";

/// Envelope fields below this number are message kinds; from here on they are attributes that a reader may ignore.
inline constexpr std::uint32_t kKindsEnd = 200;

template <>
struct Table<StepRange> {
  static constexpr std::string_view kName = "Span";
  static constexpr std::tuple kFields{
      Field{1, "epoch", &StepRange::epoch},
      Field{2, "first", &StepRange::order_first},
      Field{3, "count", &StepRange::count},
  };
};
template <>
struct Table<LayoutEntry> {
  static constexpr std::string_view kName = "LayoutEntry";
  static constexpr std::tuple kFields{
      Field{1, "name", &LayoutEntry::name},         Field{2, "shape", &LayoutEntry::shape},
      Field{3, "dtype", &LayoutEntry::dtype},       Field{4, "kind", &LayoutEntry::kind},
      Field{5, "group", &LayoutEntry::group},       Field{6, "momentum", &LayoutEntry::momentum},
      Field{7, "alias_of", &LayoutEntry::alias_of}, Field{8, "content_hash", &LayoutEntry::content_hash, Form::fixed},
  };
};

template <>
struct Table<Hello> {
  static constexpr std::string_view kName = "Hello";
  static constexpr std::uint32_t kKind = 1;
  static constexpr std::tuple kFields{
      Field{1, "protocol", &Hello::protocol},
      Field{2, "software", &Hello::software, Form::text, kNameBytesMax, kNameCharactersMax},
      Field{3, "name", &Hello::name, Form::text, kNameBytesMax, kNameCharactersMax},
      Field{4, "machine", &Hello::machine, Form::text, kNameBytesMax, kNameCharactersMax},
      Field{5, "device", &Hello::device, Form::text, kNameBytesMax, kNameCharactersMax},
      Field{6, "device_description", &Hello::device_description, Form::text, kNameBytesMax, kNameCharactersMax},
      Field{7, "token_id", &Hello::token_id, Form::fixed},
      Field{8, "features", &Hello::features},
  };
};
template <>
struct Table<Proof> {
  static constexpr std::string_view kName = "Proof";
  static constexpr std::uint32_t kKind = 2;
  static constexpr std::tuple kFields{Field{1, "mac", &Proof::mac, Form::plain, kMacBytesMax}};
};
template <>
struct Table<ProofReply> {
  static constexpr std::string_view kName = "ProofReply";
  static constexpr std::uint32_t kKind = 3;
  static constexpr std::tuple kFields{Field{1, "mac", &ProofReply::mac, Form::plain, kMacBytesMax}};
};
template <>
struct Table<RunSpec> {
  static constexpr std::string_view kName = "RunSpec";
  static constexpr std::uint32_t kKind = 4;
  static constexpr std::tuple kFields{
      Field{1, "config", &RunSpec::config, Form::plain, kConfigBytesMax},
      Field{2, "script_sha256", &RunSpec::script_sha256},
      Field{3, "script_bytes", &RunSpec::script_bytes},
  };
};
template <>
struct Table<Ready> {
  static constexpr std::string_view kName = "Ready";
  static constexpr std::uint32_t kKind = 5;
  static constexpr std::tuple kFields{
      Field{1, "layout", &Ready::layout},
      Field{2, "train_fingerprint", &Ready::train_fingerprint},
      Field{3, "test_fingerprint", &Ready::test_fingerprint},
      Field{4, "fixed_seconds", &Ready::fixed_seconds},
      Field{5, "seconds_per_sample", &Ready::seconds_per_sample},
      Field{6, "wire_seconds", &Ready::wire_seconds},
      Field{7, "script", &Ready::script, Form::plain, kScriptBytesMax},
      Field{8, "numbers", &Ready::numbers, Form::fixed},
  };
};
template <>
struct Table<Admitted> {
  static constexpr std::string_view kName = "Admitted";
  static constexpr std::uint32_t kKind = 6;
  static constexpr std::tuple kFields{Field{1, "worker", &Admitted::worker},
                                      Field{2, "fence", &Admitted::fence, Form::fixed}};
};
template <>
struct Table<Attach> {
  static constexpr std::string_view kName = "Attach";
  static constexpr std::uint32_t kKind = 7;
  static constexpr std::tuple kFields{Field{1, "fence", &Attach::fence, Form::fixed},
                                      Field{2, "mac", &Attach::mac, Form::plain, kMacBytesMax},
                                      Field{3, "number", &Attach::number}, Field{4, "count", &Attach::count}};
};
template <>
struct Table<Synced> {
  static constexpr std::string_view kName = "Synced";
  static constexpr std::uint32_t kKind = 8;
  static constexpr std::tuple kFields{Field{1, "version", &Synced::version}};
};
template <>
struct Table<Refresh> {
  static constexpr std::string_view kName = "Refresh";
  static constexpr std::uint32_t kKind = 9;
  static constexpr std::tuple kFields{Field{1, "version", &Refresh::version}};
};
template <>
struct Table<PassOpened> {
  static constexpr std::string_view kName = "PassOpened";
  static constexpr std::uint32_t kKind = 10;
  static constexpr std::tuple kFields{
      Field{1, "pass", &PassOpened::pass, Form::fixed},
      Field{2, "version", &PassOpened::version},
      Field{3, "epoch", &PassOpened::epoch},
      Field{4, "first", &PassOpened::first},
      Field{5, "count", &PassOpened::count},
  };
};
template <>
struct Table<Grant> {
  static constexpr std::string_view kName = "Grant";
  static constexpr std::uint32_t kKind = 11;
  static constexpr std::tuple kFields{
      Field{1, "pass", &Grant::pass, Form::fixed},
      Field{2, "lease", &Grant::lease},
      Field{3, "version", &Grant::version},
      Field{4, "epoch", &Grant::epoch},
      Field{5, "pass_first", &Grant::pass_first},
      Field{6, "first", &Grant::first},
      Field{7, "count", &Grant::count},
      Field{8, "limit", &Grant::limit},
      Field{9, "from_end", &Grant::from_end},
      Field{10, "codec", &Grant::codec},
      Field{11, "feedback", &Grant::feedback},
      Field{12, "state", &Grant::state},
      Field{13, "local_steps", &Grant::local_steps},
      Field{14, "spans", &Grant::spans},
      Field{15, "ahead", &Grant::ahead},
  };
};
template <>
struct Table<Trim> {
  static constexpr std::string_view kName = "Trim";
  static constexpr std::uint32_t kKind = 12;
  static constexpr std::tuple kFields{Field{1, "pass", &Trim::pass, Form::fixed}, Field{2, "lease", &Trim::lease},
                                      Field{3, "count", &Trim::count}, Field{4, "number", &Trim::number}};
};
template <>
struct Table<Cancel> {
  static constexpr std::string_view kName = "Cancel";
  static constexpr std::uint32_t kKind = 13;
  static constexpr std::tuple kFields{Field{1, "pass", &Cancel::pass, Form::fixed}, Field{2, "lease", &Cancel::lease}};
};
template <>
struct Table<Progress> {
  static constexpr std::string_view kName = "Progress";
  static constexpr std::uint32_t kKind = 14;
  static constexpr std::tuple kFields{
      Field{1, "pass", &Progress::pass, Form::fixed},
      Field{2, "lease", &Progress::lease},
      Field{3, "done", &Progress::done},
      Field{4, "limit", &Progress::limit},
      Field{5, "trim", &Progress::trim},
  };
};
template <>
struct Table<Begin> {
  static constexpr std::string_view kName = "Begin";
  static constexpr std::uint32_t kKind = 15;
  static constexpr std::tuple kFields{
      Field{1, "pass", &Begin::pass, Form::fixed},
      Field{2, "lease", &Begin::lease},
      Field{3, "first", &Begin::first},
      Field{4, "count", &Begin::count},
      Field{5, "weight", &Begin::weight},
      Field{6, "loss_sum", &Begin::loss_sum},
      Field{7, "ahead", &Begin::ahead},
  };
};
template <>
struct Table<Finish> {
  static constexpr std::string_view kName = "Finish";
  static constexpr std::uint32_t kKind = 16;
  static constexpr std::tuple kFields{
      Field{1, "pass", &Finish::pass, Form::fixed},
      Field{2, "lease", &Finish::lease},
      Field{3, "first", &Finish::first},
      Field{4, "count", &Finish::count},
      Field{5, "correct", &Finish::correct},
      Field{6, "weight", &Finish::weight},
      Field{7, "loss_sum", &Finish::loss_sum},
      Field{8, "compute_seconds", &Finish::compute_seconds},
      Field{9, "wait_seconds", &Finish::wait_seconds},
      Field{10, "micro_batch", &Finish::micro_batch},
      Field{11, "scores", &Finish::scores},
      Field{12, "residual", &Finish::residual},
      Field{13, "sent_lease", &Finish::sent_lease},
      Field{14, "sent_bytes", &Finish::sent_bytes},
      Field{15, "sent_seconds", &Finish::sent_seconds},
      Field{16, "probe", &Finish::probe, Form::plain, kProbeBytesMax},
  };
};
template <>
struct Table<Taken> {
  static constexpr std::string_view kName = "Taken";
  static constexpr std::uint32_t kKind = 17;
  static constexpr std::tuple kFields{Field{1, "pass", &Taken::pass, Form::fixed}, Field{2, "lease", &Taken::lease},
                                      Field{3, "discarded", &Taken::discarded, Form::plain, kChunkBitmapBytesMax}};
};
template <>
struct Table<PassClosed> {
  static constexpr std::string_view kName = "PassClosed";
  static constexpr std::uint32_t kKind = 18;
  static constexpr std::tuple kFields{Field{1, "pass", &PassClosed::pass, Form::fixed},
                                      Field{2, "version", &PassClosed::version}};
};
template <>
struct Table<Yield> {
  static constexpr std::string_view kName = "Yield";
  static constexpr std::uint32_t kKind = 19;
  static constexpr std::tuple<> kFields{};
};
template <>
struct Table<Failed> {
  static constexpr std::string_view kName = "Failed";
  static constexpr std::uint32_t kKind = 20;
  static constexpr std::tuple kFields{
      Field{1, "pass", &Failed::pass, Form::fixed}, Field{2, "lease", &Failed::lease},
      Field{3, "message", &Failed::message, Form::text, kStringBytesMax, kStringBytesMax}};
};
template <>
struct Table<Heartbeat> {
  static constexpr std::string_view kName = "Heartbeat";
  static constexpr std::uint32_t kKind = 21;
  static constexpr std::tuple kFields{Field{1, "sent_ns", &Heartbeat::sent_ns},
                                      Field{2, "echo_ns", &Heartbeat::echo_ns}, Field{3, "lease", &Heartbeat::lease}};
};
template <>
struct Table<Bye> {
  static constexpr std::string_view kName = "Bye";
  static constexpr std::uint32_t kKind = 22;
  static constexpr std::tuple kFields{
      Field{1, "code", &Bye::code, Form::text},
      Field{2, "expected", &Bye::expected, Form::text},
      Field{3, "found", &Bye::found, Form::text},
      Field{4, "hint", &Bye::hint, Form::text},
  };
};
template <>
struct Table<State> {
  static constexpr std::string_view kName = "State";
  static constexpr std::uint32_t kKind = 29;
  static constexpr std::tuple kFields{
      Field{1, "number", &State::number},
      Field{2, "bytes", &State::bytes},
      Field{3, "offset", &State::offset},
      Field{4, "data", &State::data, Form::plain, kSegmentBytesMax},
  };
};

template <>
struct Table<Want> {
  static constexpr std::string_view kName = "Want";
  static constexpr std::uint32_t kKind = 25;
  static constexpr std::tuple kFields{Field{1, "offer", &Want::offer},
                                      Field{2, "sha256", &Want::sha256, Form::plain, kHashBytesMax}};
};
template <>
struct Table<Offered> {
  static constexpr std::string_view kName = "Offered";
  static constexpr std::uint32_t kKind = 26;
  static constexpr std::tuple kFields{Field{1, "offer", &Offered::offer},
                                      Field{2, "sha256", &Offered::sha256, Form::plain, kHashBytesMax},
                                      Field{3, "bytes", &Offered::bytes}, Field{4, "offers", &Offered::offers}};
};
template <>
struct Table<Pair> {
  static constexpr std::string_view kName = "Pair";
  static constexpr std::uint32_t kKind = 30;
  static constexpr std::tuple kFields{Field{1, "protocol", &Pair::protocol},
                                      Field{2, "name", &Pair::name, Form::text, kNameBytesMax, kNameCharactersMax},
                                      Field{3, "share", &Pair::share, Form::whole, kShareBytes}};
};
template <>
struct Table<PairShare> {
  static constexpr std::string_view kName = "PairShare";
  static constexpr std::uint32_t kKind = 31;
  static constexpr std::tuple kFields{Field{1, "name", &PairShare::name, Form::text, kNameBytesMax, kNameCharactersMax},
                                      Field{2, "share", &PairShare::share, Form::whole, kShareBytes}};
};
template <>
struct Table<PairConfirm> {
  static constexpr std::string_view kName = "PairConfirm";
  static constexpr std::uint32_t kKind = 32;
  static constexpr std::tuple kFields{Field{1, "mac", &PairConfirm::mac, Form::plain, kMacBytesMax}};
};
template <>
struct Table<Paired> {
  static constexpr std::string_view kName = "Paired";
  static constexpr std::uint32_t kKind = 33;
  static constexpr std::tuple kFields{Field{1, "mac", &Paired::mac, Form::plain, kMacBytesMax},
                                      Field{2, "token", &Paired::token, Form::plain, kTokenTextBytesMax}};
};

}  // namespace motley::wire
