// What links cost, and the codecs that follow.

#include <algorithm>

#include "engine/coordinator_pace.h"

namespace motley::engine {
namespace {

// Of a version on its way to a joiner: what is shorter is measured better, and at less cost, by a first pass.
constexpr double kSlowLink = 0.3;
constexpr double kFasterLink = 0.5;  // times as long as when it was parked: no chance

}  // namespace

void MeasuredPace::reached(cluster::WorkerId worker, Duration time, bool remote) {
  Known& about = known(PassKind::train, worker);
  if (!about.exposed) {
    about.link_seconds = seconds(time) >= kSlowLink ? seconds(time) : 0;
    if (remote && follows_ > 0) about.link_seconds *= about.codec.version(seconds(time));
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
  if (follows_ == 0 || !about.exposed) return;
  double factor = about.codec.residual(about.left_out);
  if (factor == 1) factor = about.codec.pass(about.computed.seconds, *about.exposed);
  if (factor == 1) return;
  *about.exposed *= factor;
  about.exposures = 1;  // the next pass says more than this
  compared_ = 0;
  told_.clear();
}

void MeasuredPace::left_out(cluster::WorkerId worker, double lengths) {
  known(PassKind::train, worker).left_out = lengths;
}

}  // namespace motley::engine
