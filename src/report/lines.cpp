#include "report/lines.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/format.h"

namespace motley::report {
namespace {

using Count = unsigned long long;

std::string noise_text(const Noise& noise) {
  if (noise.records == 0) {
    return "gradient noise: unknown, because no step had two contributions to compare; it needs a second worker";
  }
  if (!(noise.scale > 0))
    return "gradient noise: not known yet; the steps so far are too few or too noisy to tell it from the signal";
  return formatted("gradient noise scale: %.0f samples", noise.scale) +
         (noise.useful_batch > 0 ? formatted("; a global batch of about %.0f makes the most progress a second here",
                                             std::max(1.0, noise.useful_batch))
                                 : std::string());
}

// What is typed elsewhere, by the likeliest address or by all.
std::string typed(const std::vector<std::string>& addresses, const std::string& code, bool all) {
  std::string lines;
  for (const std::string& address : addresses) {
    lines.append("  motley join ").append(address).append(" ").append(code).append("\n");
    if (!all) break;
  }
  return lines;
}

std::string text(const RunStarted& e) {
  const std::string steps = e.steps > 0 ? std::to_string(e.steps) + " " : "";
  std::string all = e.name + formatted(": %llu parameters, ", static_cast<Count>(e.parameters)) + steps +
                    formatted("steps of %llu samples, in ", static_cast<Count>(e.global_batch)) + e.directory + "\n";
  if (e.first_step > 0) all += formatted("going on after step %llu\n", static_cast<Count>(e.first_step));
  if (e.plaintext) all += "NOT ENCRYPTED: everybody on this network can read and change what is sent (--plaintext)\n";
  if (!e.pairing_code.empty() && !e.addresses.empty()) {
    all += "on another machine, in the next ten minutes:\n  pip install motley\n" +
           typed(e.addresses, e.pairing_code, e.verbose);
  }
  if (!e.join.empty() && (e.pairing_code.empty() || e.verbose))
    all += "on another machine:  motley join " + e.join + (e.join_with.empty() ? "" : " " + e.join_with) + "\n";
  if (!e.token_file.empty()) all += "the join token is in " + e.token_file + "\n";
  return all;
}

std::string text(const CodeShown& e) {
  return "the code " + e.reason + "; the next one, for ten minutes:\n" + typed(e.addresses, e.code, e.verbose);
}

std::string text(const WorkerChanged& e) {
  return e.worker + " " + e.change + (e.description.empty() ? "" : " (" + e.description + ")") +
         (e.reason.empty() ? "" : ": " + e.reason) + "\n";
}

std::string text(const PlanMade& e) {
  return formatted("plan for %llu samples a step: %.0f samples/s; ", static_cast<Count>(e.global_batch),
                   e.samples_per_s) +
         e.recommendation + "\n";
}

std::string text(const StepDone& e) {
  std::string parts;
  for (const WorkerPart& part : e.workers) {
    parts += (parts.empty() ? "  " : ", ") + part.worker + " " + std::to_string(part.samples);
  }
  return formatted("step %llu/%llu  loss %.6f  %.0f samples/s", static_cast<Count>(e.step) + 1,
                   static_cast<Count>(e.steps), e.loss, e.samples_per_s) +
         parts + "\n";
}

std::string text(const AdviceGiven& e) {
  return e.sentence +
         formatted(" That would save at least %.0f ms of a step of %.0f ms (%.0f %%): --set ", 1e3 * e.saves_s,
                   1e3 * e.step_s, 100 * e.saves_s / e.step_s) +
         e.set + "\n";
}

std::string text(const ModeChosen& e) { return "train.mode=auto takes " + e.sentence + "\n"; }

std::string text(const EvalDone& e) {
  return formatted("evaluation after step %llu (epoch %llu): loss %.6f", static_cast<Count>(e.step),
                   static_cast<Count>(e.epoch), e.loss) +
         (e.has_accuracy ? formatted(", accuracy %.4f", e.accuracy) : std::string()) +
         (e.exact ? "" : " (of the weights that workers hold)") + "\n";
}

std::string text(const CheckpointWritten& e) {
  return formatted("checkpoint of step %llu: ", static_cast<Count>(e.step)) + e.path + "\n";
}

// What train.verify costs.
std::string verified_text(const Done& e) {
  if (e.verified == 0) return {};
  return formatted(
      "%llu samples (%.2g %%) were computed twice, to compare the workers\n", static_cast<Count>(e.verified),
      100.0 * static_cast<double>(e.verified) / static_cast<double>(std::max<std::uint64_t>(1, e.samples)));
}

std::string steps_text(const Done& e) {
  if (e.local_steps == 0) return formatted("done: %llu steps", static_cast<Count>(e.steps));
  return formatted("done: %llu rounds of %llu steps", static_cast<Count>(e.steps), static_cast<Count>(e.local_steps)) +
         (e.cosine ? formatted(" (cosine between what two workers came to: %.2f)", *e.cosine) : std::string());
}

std::string text(const Done& e) {
  return steps_text(e) +
         formatted(", %llu samples in %.1f s (%.0f samples/s", static_cast<Count>(e.samples), e.seconds,
                   e.samples_per_s) +
         (e.predicted_samples_per_s > 0 ? formatted(", predicted %.0f", e.predicted_samples_per_s) : std::string()) +
         formatted("), loss %.6f", e.loss) +
         (e.has_accuracy ? formatted(", test accuracy %.4f", e.accuracy) : std::string()) + "\n" +
         (e.local_steps == 0 ? noise_text(e.noise) + "\n" : std::string()) + verified_text(e) +
         "checkpoint: " + e.checkpoint + "\n";
}

std::string text(const Failure& e) {
  return "error (" + std::string(to_word(e.error.code)) + "): " + e.error.message + "\n" +
         (e.error.hint.empty() ? "" : "  try: " + e.error.hint + "\n");
}

std::string text(const Note& e) { return e.text + "\n"; }

std::string text(const EvalPointReached&) { return {}; }
std::string text(const Paused&) { return {}; }
std::string text(const Waiting&) { return {}; }

}  // namespace

std::string lines_of(const Event& event) {
  return std::visit([](const auto& one) { return text(one); }, event);
}

}  // namespace motley::report
