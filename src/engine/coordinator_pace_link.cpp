// What links cost, and the codecs that follow.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/coordinator_pace.h"

namespace motley::engine {
namespace {

// Of a version on its way to a joiner: what is shorter is measured better, and at less cost, by a first pass.
constexpr double kSlowLink = 0.3;
constexpr double kSlowestBelieved = 3;  // times the mean
// A link that became slow is believed with its second pass in a row: so many times as long as before, and longer by so
// much of the whole pass.
constexpr double kMuchLonger = 2, kLongerByPart = 0.2;
constexpr std::uint32_t kExposuresWarm = 8;  // among the first so many, a shorter one counts half
constexpr double kFasterLink = 0.5;          // times as long as when it was parked: no chance

}  // namespace

void MeasuredPace::reached(cluster::WorkerId worker, Duration time) {
  Known& about = known(PassKind::train, worker);
  if (!about.exposed) {
    about.link_seconds = seconds(time) >= kSlowLink ? seconds(time) : 0;
    if (about.remote && follows_ > 0) about.link_seconds *= about.codec.version(seconds(time));
  } else if (!about.parked_link) {
    about.parked_link = {seconds(time), *about.exposed};
  } else if (const double part = seconds(time) / about.parked_link->version_seconds; part < kFasterLink) {
    about.exposed = std::min(*about.exposed, part * about.parked_link->exposed);
    about.exposures = 0;
    about.faster = true;
  }
}

codec::CodecId MeasuredPace::codec(cluster::WorkerId worker) const {
  return worker <= train_.known.size() ? train_.known[worker - 1].codec.codec() : codec::CodecId::fp32;
}

void MeasuredPace::weigh_codec(cluster::WorkerId worker) {
  Known& about = known(PassKind::train, worker);
  if (follows_ == 0 || !about.remote || !about.exposed) return;
  double factor = about.codec.residual(about.left_out);
  if (factor == 1) factor = about.codec.pass(about.computed.seconds, *about.exposed);
  if (factor == 1) return;
  *about.exposed *= factor;
  about.exposures = 1;  // the next pass says more than this
  compared_ = 0;
  told_.clear();
}

bool MeasuredPace::remote(cluster::WorkerId worker) const {
  return worker <= train_.known.size() && train_.known[worker - 1].remote;
}

std::size_t MeasuredPace::senders(std::span<const cluster::WorkerId> workers,
                                  std::span<const std::uint64_t> counts) const {
  std::size_t sending = 0;
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (counts[i] > 0 && remote(workers[i])) ++sending;
  return sending;
}

void MeasuredPace::connected(cluster::WorkerId worker, bool remote) { known(PassKind::train, worker).remote = remote; }

void MeasuredPace::received(cluster::WorkerId worker, const plan::Transfer& weights) {
  known(PassKind::train, worker).down.record(weights);
}

void MeasuredPace::sent(cluster::WorkerId worker, cluster::LeaseId lease, const plan::Transfer& gradient) {
  Known& about = known(PassKind::train, worker);
  if (lease <= about.sent || !plan::LinkModel::tells(gradient)) return;
  if (lease != about.elapsed.lease && lease != about.elapsed_before.lease) return;  // it was not taken as a whole
  const double end = (lease == about.elapsed.lease ? about.elapsed : about.elapsed_before).seconds;
  const auto bytes = static_cast<double>(gradient.bytes);
  const double before = about.up.bytes_per_second().value_or(bytes / gradient.seconds);
  sendings_.push_back({.begin = end - gradient.seconds, .end = end, .bytes = bytes, .before = before});
  about.up.record(gradient);
  about.sent = lease;
}

void MeasuredPace::weigh_shared_link() {
  if (sendings_.size() == senders_) shared_link_.record(sendings_);
  sendings_.clear();
  senders_ = static_cast<std::size_t>(std::ranges::count_if(sharing_, [this](auto each) { return remote(each); }));
}

double MeasuredPace::link_seconds(const Kind& kind, std::span<const cluster::WorkerId> workers) const {
  if (&kind != &train_ || !fixed_.empty() || !shared_link_.bytes_per_second()) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const cluster::WorkerId worker : workers) {
    const codec::CodecId codec = gradients_.value_or(this->codec(worker));
    if (remote(worker)) least = std::min(least, contribution_bytes_[static_cast<std::size_t>(codec)]);
  }
  return std::isfinite(least) ? least / *shared_link_.bytes_per_second() : 0;
}

double MeasuredPace::wait_for_another(const Kind& kind, cluster::WorkerId worker) const {
  const double link = link_seconds(kind, {&worker, 1});
  if (link == 0) return 0;
  const Known& about = kind.known[worker - 1];
  return about.exposed ? std::min(link, about.waits() / static_cast<double>(about.senders)) : link;
}

plan::Candidate MeasuredPace::candidate(const Kind& kind, cluster::WorkerId worker) const {
  plan::Candidate each{.time = time(kind, worker), .remote = remote(worker), .wait = wait_for_another(kind, worker)};
  if (!each.time || each.wait == 0 || !kind.known[worker - 1].exposed) return each;
  each.time->fixed -= static_cast<double>(kind.known[worker - 1].senders - 1) * each.wait;
  return each;
}

void MeasuredPace::expect_senders(std::size_t senders) {
  for (const cluster::WorkerId worker : sharing_) {
    if (!remote(worker)) continue;
    Known& about = train_.known[worker - 1];
    const double more = static_cast<double>(senders) - static_cast<double>(about.senders);
    if (about.exposed && more != 0) *about.exposed += more * wait_for_another(train_, worker);
    about.senders = senders;
  }
}

void MeasuredPace::left_out(cluster::WorkerId worker, double lengths) {
  known(PassKind::train, worker).left_out = lengths;
}

void MeasuredPace::pair_up(Known& known) {
  if (known.elapsed.lease == 0 || known.elapsed.lease != known.computed.lease) return;
  double exposed = std::max(0.0, known.elapsed.seconds - known.computed.seconds);
  std::optional<double> longer;
  if (known.exposed_settled && known.exposures > 0 && exposed > kMuchLonger * *known.exposed &&
      exposed > *known.exposed + kLongerByPart * known.elapsed.seconds) {
    longer = exposed;
  }
  const std::optional<double> before = std::exchange(known.longer, longer);
  // The first pass pays for first touch; until some are known each counts the same.
  ++known.exposures;
  if (longer && before) {
    exposed = std::min(*longer, *before);
  } else if (known.exposures > 2) {
    double newest = std::max(kNewest, 1.0 / (known.exposures - 1));
    if (known.exposures <= kExposuresWarm && exposed < *known.exposed) newest = std::max(newest, 0.5);
    exposed = std::min(exposed, kSlowestBelieved * (*known.exposed + known.computed.seconds));
    exposed = *known.exposed + newest * (exposed - *known.exposed);
  }
  known.exposed = exposed;
  known.exposed_settled = known.exposed_settled || known.exposures >= kExposuresBelieved;
  known.parked_link.reset();
}

}  // namespace motley::engine
