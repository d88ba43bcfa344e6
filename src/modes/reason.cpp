#include "modes/action.h"

namespace motley::modes {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string positions(const Reason& reason) {
  return "positions " + number(reason.a) + " to " + number(reason.a + (reason.b == 0 ? 0 : reason.b - 1));
}

std::string about_sessions(const Reason& reason, const std::string& who) {
  switch (reason.code) {
    case ReasonCode::excluded:
      return who + " was struck out: " + number(reason.a) + " bad contributions";
    case ReasonCode::otherwise:
      return who + " computes another gradient than the head's own device";
    case ReasonCode::silent:
      return "nothing was heard for " + number(reason.a) + " ms";
    case ReasonCode::slow_to_load:
      return "model and data were not ready after " + number(reason.a) + " s";
    case ReasonCode::makes_room:
      return "it had not begun to work after " + number(reason.a) + " s, and somebody else wanted its place";
    case ReasonCode::channel_closed:
      return "the connection closed";
    case ReasonCode::left:
    case ReasonCode::yielded:
      return who + " left, all its work is in";
    case ReasonCode::full:
      return "the run has " + number(reason.a) + " workers and takes no more";
    case ReasonCode::joined:
      return who + " joined";
    case ReasonCode::behind:
      return who + " holds version " + number(reason.a) + " and the run is at " + number(reason.b);
    case ReasonCode::does_not_pay:
      return "a step would take " + number(reason.a) + " ms with " + who + " and takes " + number(reason.b) +
             " ms without";
    case ReasonCode::compared:
      return "the steps are compared with those that " + who + " makes alone";
    case ReasonCode::pays:
      return who + " makes the steps shorter";
    case ReasonCode::background:
      return who + " evaluates while the others train";
    case ReasonCode::nobody_else:
      return "nobody else is left";
    case ReasonCode::alone:
      return who + " works alone, so it makes " + number(reason.a) + " steps without asking";
    default:
      return "no reason given";
  }
}

}  // namespace

std::string sentence(const Reason& reason, const NameOf& name) {
  const std::string who = reason.worker == 0 || !name ? "a worker" : name(reason.worker);
  switch (reason.code) {
    case ReasonCode::share:
      return "its share: " + number(reason.a) + " of " + number(reason.b) + " samples";
    case ReasonCode::moved:
      return who + " is behind, so " + number(reason.a) + " of its samples go to somebody who is ahead";
    case ReasonCode::lost_lease:
      return who + " was lost before it delivered these positions";
    case ReasonCode::cut_short:
      return who + " did less than it was granted";
    case ReasonCode::overdue:
      return "the lease of " + who + " is overdue after " + number(reason.a) + " ms, so somebody else computes it too";
    case ReasonCode::poisoned:
      return who + " sent NaN or infinity for " + positions(reason) +
             "; its contribution is refused and computed again";
    case ReasonCode::poisoned_twice:
      return "the gradient of " + positions(reason) + " is not finite, computed twice";
    case ReasonCode::unlikely:
      return who + " sent a weight, a loss or a gradient for " + positions(reason) +
             " that no other worker comes near; they are computed again by another";
    case ReasonCode::verified:
      return "what " + who + " computed for " + positions(reason) + " is computed by another as well, to compare";
    case ReasonCode::differs:
      return who + " comes to another gradient for " + positions(reason) +
             " than who computed them before; somebody else computes them, which shows who is wrong";
    case ReasonCode::handed_back:
      return who + " handed back " + number(reason.a) + " leases more than it computed";
    case ReasonCode::failed_lease:
      return who + " could not compute its lease";
    case ReasonCode::overlap:
      return who + " began positions that others began already";
    case ReasonCode::wrong_weight:
      return who + " declared another weight for " + positions(reason) +
             " than was declared before; somebody else computes them, which shows who is wrong";
    case ReasonCode::strike:
      return who + " has " + number(reason.a) + " of " + number(reason.b) + " strikes";
    case ReasonCode::run_over:
      return "the run is over";
    case ReasonCode::stopped:
      return "the run was asked to stop";
    case ReasonCode::evaluation:
      return "an evaluation is due";
    case ReasonCode::paused:
      return "the script looks at the run between two steps";
    case ReasonCode::all_covered:
      return "all positions are covered";
    case ReasonCode::covered_elsewhere:
      return "its positions are covered by others";
    case ReasonCode::woke:
      return "the coordinator did not run for " + number(reason.a) + " ms; deadlines were moved by that";
    default:
      return about_sessions(reason, who);
  }
}

}  // namespace motley::modes
