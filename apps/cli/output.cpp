#include "output.h"

#include <algorithm>

#include "report/json_sink.h"
#include "report/plain_sink.h"
#include "standard_streams.h"

namespace motley::cli {
namespace {

std::unique_ptr<Output> make_json_output() {
  auto out = std::make_shared<report::Writer>(kOut);
  // Two that wrote into one pipe would take each other's room.
  auto err = same_stream(kOut, kErr) ? out : std::make_shared<report::Writer>(kErr);
  auto sinks = std::make_shared<report::Tee>(
      std::vector<std::shared_ptr<report::Sink>>{report::make_json_sink(out), report::make_plain_sink(err)});
  return std::make_unique<Output>(std::move(sinks), std::vector{std::move(out), std::move(err)});
}

}  // namespace

bool Output::flush(std::chrono::milliseconds patience) const {
  return std::ranges::all_of(writers_, [&](const auto& writer) { return writer->flush(patience); });
}

void Output::hurry() {
  for (const auto& writer : writers_) writer->hurry();
}

std::unique_ptr<Output> make_output(bool json, bool quiet) {
  if (json) return make_json_output();
  auto writer = std::make_shared<report::Writer>(quiet ? kErr : kOut);
  std::shared_ptr<report::Sink> sink;
  if (!quiet && is_terminal(kOut)) {
    sink = report::make_terminal_sink(writer);
  } else {
    sink = report::make_plain_sink(writer);
  }
  return std::make_unique<Output>(std::move(sink), std::vector{std::move(writer)});
}

}  // namespace motley::cli
