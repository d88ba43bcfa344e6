#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/link.h"
#include "codec/codec.h"
#include "commands.h"
#include "table.h"

namespace motley::cli {
namespace {

using Json = nlohmann::ordered_json;

struct LinkArguments {
  std::string token, token_file;
  bench::LinkListenOptions listen;
  double seconds = 2, step_megabytes = 100;
};

Json json_of(const transport::Interface& interface) {
  Json json{{"kind", to_word(interface.kind)}};
  if (!interface.name.empty()) json["name"] = interface.name;
  json["mbit_s"] = interface.mbit_per_s > 0 ? Json(interface.mbit_per_s) : Json();
  json["half_duplex"] = interface.half_duplex;
  return json;
}

Json json_of(const bench::RoundTrips& trips) {
  return {{"median_ms", rounded(trips.median_ms)},
          {"high_ms", rounded(trips.high_ms)},
          {"worst_ms", rounded(trips.worst_ms)},
          {"samples", trips.samples},
          {"lost", trips.lost}};
}

Json json_of(const bench::Phase& phase) {
  Json json;
  if (phase.up_mbit_s > 0) json["up_mbit_s"] = rounded(phase.up_mbit_s);
  if (phase.down_mbit_s > 0) json["down_mbit_s"] = rounded(phase.down_mbit_s);
  json["processor_cores"] = rounded(phase.processor_cores);
  json["round_trip"] = json_of(phase.round_trips);
  return json;
}

/// What such a step costs in fewer bits: int8 has a scale of two bytes for each 256 elements.
double int8_part() { return static_cast<double>(codec::encoded_bytes(codec::CodecId::int8, 1U << 20)) / (4U << 20); }

void print_json(const bench::LinkReport& report, const bench::Diagnosis& diagnosis, double step_bytes) {
  const bench::LinkFigures& f = report.figures;
  const double step_s = bench::step_seconds(f, step_bytes);
  print_json_line(Json{{"event", "link"},
                       {"peer", report.peer},
                       {"encrypted", !report.cipher.empty()},
                       {"cipher", report.cipher},
                       {"near", json_of(f.near)},
                       {"far", json_of(f.far)},
                       {"idle", json_of(f.idle)},
                       {"up", json_of(f.up)},
                       {"down", json_of(f.down)},
                       {"both", json_of(f.both)},
                       {"of_link", diagnosis.of_link > 0 ? Json(rounded(diagnosis.of_link)) : Json()},
                       {"step_bytes", step_bytes},
                       {"step_s", rounded(step_s)},
                       {"step_int8_s", rounded(step_s * int8_part())},
                       {"verdict", to_word(diagnosis.verdict)},
                       {"diagnosis", diagnosis.sentence}}
                      .dump());
}

std::string text_of(const transport::Interface& interface) {
  std::string text = to_word(interface.kind);
  if (!interface.name.empty()) text += " " + interface.name;
  if (interface.mbit_per_s > 0) text += ", " + bench::rate_text(interface.mbit_per_s);
  if (interface.half_duplex) text += ", half duplex";
  return text;
}

std::vector<std::string> row_of(const std::string& name, const bench::Phase& phase) {
  const auto rate = [](double mbit_s) { return mbit_s > 0 ? bench::rate_text(mbit_s) : std::string("-"); };
  return {name, rate(phase.up_mbit_s), rate(phase.down_mbit_s), short_number(phase.round_trips.median_ms),
          short_number(phase.round_trips.worst_ms)};
}

void print_text(const bench::LinkReport& report, const bench::Diagnosis& diagnosis, double step_bytes) {
  const bench::LinkFigures& f = report.figures;
  std::printf("%s, %s\nthis machine: %s; the other: %s\n", report.peer.c_str(),
              report.cipher.empty() ? "not encrypted" : report.cipher.c_str(), text_of(f.near).c_str(),
              text_of(f.far).c_str());
  bench::Phase idle;
  idle.round_trips = f.idle;
  print_table({{"", "up", "down", "round trip, ms", "worst"},
               row_of("idle", idle),
               row_of("up", f.up),
               row_of("down", f.down),
               row_of("both at once", f.both)});
  const double step_s = bench::step_seconds(f, step_bytes);
  std::printf("a step that sends %.0f MB up and as much down takes %s s or more, in int8 %s s\n", 1e-6 * step_bytes,
              short_number(step_s).c_str(), short_number(step_s * int8_part()).c_str());
  std::printf("%s\n", diagnosis.sentence.c_str());
}

Status listen(const LinkArguments& arguments, Context& context) {
  bench::LinkListenEvents events;
  events.opened = [&](const fleet::JoinToken& token) {
    const std::string text = arguments.listen.token_file.empty() ? fleet::to_text(token) : "";
    if (context.json) {
      print_json_line(
          Json{{"event", "listening"}, {"token", text}, {"port", token.port}, {"addresses", token.addresses}}.dump());
    } else {
      std::printf("on another machine:  motley bench link %s\n",
                  text.empty() ? ("--token-file " + arguments.listen.token_file).c_str() : text.c_str());
    }
    std::fflush(stdout);
  };
  const auto say = [&context](const std::string& peer, const char* change) {
    if (context.json) {
      print_json_line(Json{{"event", "peer"}, {"peer", peer}, {"change", change}}.dump());
    } else {
      std::printf("%s %s\n", peer.c_str(), change);
      std::fflush(stdout);
    }
  };
  events.measuring = [say](const std::string& peer) { say(peer, "measures"); };
  events.left = [say](const std::string& peer) { say(peer, "left"); };
  return bench::serve_link(arguments.listen, events, context.stop);
}

Status run_link(const LinkArguments& arguments, Context& context) {
  const bench::LinkListenOptions& side = arguments.listen;
  if (arguments.token.empty() && arguments.token_file.empty()) return listen(arguments, context);
  if (side.once || side.plaintext || !side.listen.empty() || !side.token_file.empty()) {
    return Error{ErrorCode::usage, "--listen, --write-token, --once and --plaintext: expected no token beside them",
                 "they are of the side that listens: motley bench link"};
  }
  if (!arguments.token.empty() && !arguments.token_file.empty()) {
    return Error{ErrorCode::usage, "expected a token or --token-file FILE, found both", "motley bench link motley1.…"};
  }
  Result<fleet::JoinToken> token = read_token(arguments.token, arguments.token_file, context);
  if (!token) return token.error();
  const bench::LinkOptions options{std::move(*token), arguments.seconds};
  const auto note = [&context](const std::string& text) { context.sink->take(report::Note{text}); };
  const Result<bench::LinkReport> report = bench::measure_link(options, note, context.stop);
  if (!report) return report.error();
  const bench::Diagnosis diagnosis = bench::diagnose(report->figures);
  const double step_bytes = 1e6 * arguments.step_megabytes;
  if (context.json) {
    print_json(*report, diagnosis, step_bytes);
  } else {
    print_text(*report, diagnosis, step_bytes);
  }
  return {};
}

}  // namespace

void add_bench(CLI::App& app, Command& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "measure the link to another machine");
  bench->callback([&chosen] {
    if (chosen) return;  // what is measured has spoken before
    chosen = [](Context&) -> Status {
      return Error{ErrorCode::usage, "bench what? expected link", "motley bench --help"};
    };
  });
  auto arguments = std::make_shared<LinkArguments>();
  CLI::App* command = bench->add_subcommand(
      "link",
      "measure the link between two machines and say what is wrong with it: without a token on one, with on the other");
  command->add_option(
      "token", arguments->token,
      "what motley bench link printed on the other machine; a file that holds it; or - for standard input");
  command->add_option("--token-file", arguments->token_file, "wait for FILE and read the token in it");
  command->add_option("--seconds", arguments->seconds, "to load the link for, each way and both (default: 2)")
      ->check(CLI::Range(0.05, bench::kLinkSecondsMax));
  command->add_option("--step", arguments->step_megabytes, "megabytes of the step whose cost is told (default: 100)")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--listen", arguments->listen.listen,
                      "ADDRESS:PORT to listen on (default: every address, port 7117 or a free one)");
  command->add_option("--write-token", arguments->listen.token_file, "write the token to FILE instead of printing it");
  command->add_flag("--once", arguments->listen.once, "listen until the first that measured has left");
  command->add_flag("--plaintext", arguments->listen.plaintext, "listen without encryption");
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_link(*arguments, context); }; });
}

}  // namespace motley::cli
