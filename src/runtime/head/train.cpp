#include "runtime/head/train.h"

#include <charconv>
#include <optional>

#include "machine/keep_awake.h"
#include "runtime/head/auto_mode.h"
#include "runtime/head/head.h"

namespace motley::runtime {

Result<transport::Endpoint> parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  transport::Endpoint endpoint;
  endpoint.host = colon == std::string::npos ? "" : text.substr(0, colon);
  if (endpoint.host.size() >= 2 && endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc{} || end != port.data() + port.size() || port.empty()) {
    return Error{ErrorCode::usage, "expected ADDRESS:PORT, found '" + text + "'", "0.0.0.0:7117"};
  }
  if (endpoint.host.empty()) endpoint.host = "0.0.0.0";
  return endpoint;
}

Status train(const TrainOptions& options, ModelProvider& provider, report::Sink& sink, StopSource& stop) {
  std::optional<machine::KeepAwake> awake;
  if (options.resource_policy.keep_awake) awake.emplace(machine::kTrainsHere);
  TrainOptions chosen = options;
  if (chosen.reception == nullptr) chosen.reception = std::make_shared<Reception>();
  const Result<std::optional<std::string>> mode = auto_mode(chosen, provider, sink, stop);
  if (!mode) return mode.error();
  if (*mode) chosen.overrides.push_back("train.mode=" + **mode);
  Head head(chosen, provider, sink);
  if (Status status = head.open(); !status) return status;
  head.start(true);
  stop.on_request([&head] {
    head.host().tell(report::Note{"finishing the open step; Ctrl-C again ends at once"});
    head.stop();
  });
  Status status = head.wait();
  stop.on_request({});
  return status;
}

}  // namespace motley::runtime
