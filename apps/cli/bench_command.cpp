#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/codec_speed.h"
#include "bench/server_speed.h"
#include "bench/wire_speed.h"
#include "commands.h"
#include "table.h"

namespace motley::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The machine that was measured, as far as the models' devices know it.
void print_machine(Context& context) {
  std::string description;
  unsigned threads = 0;
  for (const runtime::Device& device : context.models->devices()) {
    if (device.name != "cpu") continue;
    description = device.description;
    threads = device.threads;
  }
  if (context.json) {
    print_json_line(Json{{"event", "machine"}, {"description", description}, {"threads", threads}}.dump());
  } else {
    std::printf("%s, %u threads\n", description.c_str(), threads);
  }
}

Status run_wire(const bench::WireOptions& options, Context& context) {
  print_machine(context);
  const Result<std::vector<bench::WireRow>> rows = bench::measure_wire(options, context.stop);
  if (!rows) return rows.error();
  std::vector<std::vector<std::string>> table{{"loopback, GB/s", "connections", "ways", "motley", "blocking calls",
                                               "ratio", "processor s/GB", "receiver's", "theirs", "receiver's"}};
  for (const bench::WireRow& row : *rows) {
    const auto receiver = [&row](const bench::Speed& speed) {
      return row.both_ways ? std::string("-") : short_number(speed.receiver_s_per_gb);
    };
    const char* kind = row.encrypted ? "tls" : "plain";
    if (context.json) {
      Json event{{"event", "wire"},
                 {"kind", kind},
                 {"connections", row.connections},
                 {"both_ways", row.both_ways},
                 {"gb_s", rounded(row.motley.gb_per_s)},
                 {"best_gb_s", rounded(row.best_gb_per_s)},
                 {"raw_gb_s", rounded(row.raw.gb_per_s)},
                 {"over_raw", rounded(row.over_raw)},
                 {"processor_s_per_gb", rounded(row.motley.processor_s_per_gb)},
                 {"raw_processor_s_per_gb", rounded(row.raw.processor_s_per_gb)},
                 {"io_threads", options.io_threads},
                 {"megabytes", options.megabytes},
                 {"rounds", options.rounds}};
      if (!row.both_ways) {
        event["sender_s_per_gb"] = rounded(row.motley.processor_s_per_gb - row.motley.receiver_s_per_gb);
        event["receiver_s_per_gb"] = rounded(row.motley.receiver_s_per_gb);
        event["raw_sender_s_per_gb"] = rounded(row.raw.processor_s_per_gb - row.raw.receiver_s_per_gb);
        event["raw_receiver_s_per_gb"] = rounded(row.raw.receiver_s_per_gb);
      }
      print_json_line(event.dump());
      continue;
    }
    table.push_back({kind, std::to_string(row.connections), row.both_ways ? "both" : "one",
                     short_number(row.motley.gb_per_s), short_number(row.raw.gb_per_s), short_number(row.over_raw),
                     short_number(row.motley.processor_s_per_gb), receiver(row.motley),
                     short_number(row.raw.processor_s_per_gb), receiver(row.raw)});
  }
  if (!context.json) print_table(table);
  return {};
}

void add_wire(CLI::App& bench, Command& chosen) {
  auto options = std::make_shared<bench::WireOptions>();
  CLI::App* command = bench.add_subcommand(
      "wire", "frames over loopback, plain and TLS, beside blocking sockets and blocking OpenSSL in the same run");
  command->add_option("--megabytes", options->megabytes, "to send each way in each turn (default: 512)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--rounds", options->rounds, "turns that each of them gets (default: 3)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--io-threads", options->io_threads,
                   "of the transport, on each side (default: 1, as in a run on links of up to 4 Gbit/s)")
      ->check(CLI::Range(1, 16));
  command->add_option("--connections", options->connections, "side by side; may be repeated (default: 1 and 2)")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 16));
  command->callback(
      [&chosen, options] { chosen = [options](Context& context) { return run_wire(*options, context); }; });
}

Status run_codec(const bench::CodecOptions& options, Context& context) {
  print_machine(context);
  const Result<bench::CodecReport> report = bench::measure_codecs(options, context.stop);
  if (!report) return report.error();
  if (context.json) {
    print_json_line(Json{{"event", "memory"},
                         {"elements", options.elements},
                         {"memcpy_gb_s", rounded(report->memcpy_gb_s)},
                         {"memcpy_touched_gb_s", rounded(report->memcpy_touched)},
                         {"adamw_touched_gb_s", rounded(report->adamw_touched)}}
                        .dump());
  }
  std::vector<std::vector<std::string>> table{
      {"one core, GB/s of fp32", "encode", "with feedback", "decode", "decode and add", "encode delta", "add delta"}};
  for (const bench::CodecRow& row : report->rows) {
    const std::string word(codec::to_word(row.codec));
    if (context.json) {
      print_json_line(Json{{"event", "codec"},
                           {"set", row.set},
                           {"codec", word},
                           {"encode_gb_s", rounded(row.encode)},
                           {"encode_feedback_gb_s", rounded(row.encode_feedback)},
                           {"decode_gb_s", rounded(row.decode)},
                           {"decode_add_gb_s", rounded(row.decode_add)},
                           {"encode_delta_gb_s", rounded(row.encode_delta)},
                           {"add_delta_gb_s", rounded(row.add_delta)}}
                          .dump());
      continue;
    }
    table.push_back({word + ", " + row.set, short_number(row.encode), short_number(row.encode_feedback),
                     short_number(row.decode), short_number(row.decode_add), short_number(row.encode_delta),
                     short_number(row.add_delta)});
  }
  if (context.json) return {};
  print_table(table);
  std::printf("memcpy copies %s GB/s; touched (read and written): memcpy %s, AdamW %s GB/s\n",
              short_number(report->memcpy_gb_s).c_str(), short_number(report->memcpy_touched).c_str(),
              short_number(report->adamw_touched).c_str());
  return {};
}

void add_codec(CLI::App& bench, Command& chosen) {
  auto options = std::make_shared<bench::CodecOptions>();
  CLI::App* command =
      bench.add_subcommand("codec", "codecs, deltas and the optimizer on one core, beside a memcpy of the same floats");
  command->add_option("--elements", options->elements, "floats (default: 16777216)")->check(CLI::Range(256, 1 << 28));
  command->add_option("--rounds", options->rounds, "turns, of which the best counts (default: 7)")
      ->check(CLI::Range(1, 1000));
  command->callback(
      [&chosen, options] { chosen = [options](Context& context) { return run_codec(*options, context); }; });
}

Status run_server(const bench::ServerOptions& options, Context& context) {
  print_machine(context);
  const Result<bench::ServerReport> report = bench::measure_server(options, context.stop);
  if (!report) return report.error();
  const std::string codec(codec::to_word(options.codec));
  if (context.json) {
    print_json_line(Json{{"event", "server"},
                         {"parameters", report->parameters},
                         {"chunks", report->chunks},
                         {"contributions", options.contributions},
                         {"codec", codec},
                         {"clips", options.clips},
                         {"threads", options.threads},
                         {"steps", options.steps},
                         {"step_ms", rounded(report->step_ms)},
                         {"touched_gb_s", rounded(report->touched_gb_s)},
                         {"memcpy_touched_gb_s", rounded(report->memcpy_touched_gb_s)},
                         {"bytes_per_parameter", rounded(report->bytes_per_parameter)}}
                        .dump());
    return {};
  }
  std::printf("%.1f M parameters, AdamW%s, %u contributions in %s, %u thread%s\n",
              1e-6 * static_cast<double>(report->parameters), options.clips ? ", clipping" : "", options.contributions,
              codec.c_str(), options.threads, options.threads == 1 ? "" : "s");
  print_table({{"", "a step, ms", "touched, GB/s", "memcpy, the same", "bytes a parameter"},
               {"server", short_number(report->step_ms), short_number(report->touched_gb_s),
                short_number(report->memcpy_touched_gb_s), short_number(report->bytes_per_parameter)}});
  return {};
}

void add_server(CLI::App& bench, Command& chosen) {
  auto options = std::make_shared<bench::ServerOptions>();
  auto codec = std::make_shared<std::string>("fp32");
  CLI::App* command = bench.add_subcommand(
      "server", "a step of the parameter server: sum, clip, AdamW; its time and memory, beside a memcpy");
  command->add_option("--parameters", options->parameters, "of the model (default: 16000000)")
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 33));
  command->add_option("--contributions", options->contributions, "to be summed (default: 2)")->check(CLI::Range(1, 64));
  command->add_option("--codec", *codec, "of the contributions (default: fp32)")
      ->check(CLI::IsMember({"fp32", "bf16", "int8", "int4"}));
  command->add_flag("!--no-clipping", options->clips, "without the norm, in one go over the memory");
  command->add_option("--threads", options->threads, "that share the arithmetic, as in a run (default: 1)")
      ->check(CLI::Range(1, 256));
  command->add_option("--steps", options->steps, "to be measured (default: 5)")->check(CLI::Range(1, 10000));
  command->callback([&chosen, options, codec] {
    chosen = [options, codec](Context& context) {
      options->codec = *codec::from_word(*codec);
      return run_server(*options, context);
    };
  });
}

}  // namespace

void add_bench(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("bench", "measure connections, codecs, the server, or the link to another machine");
  command->callback([&chosen] {
    if (chosen) return;  // what is measured has spoken before
    chosen = [](Context&) -> Status {
      return Error{ErrorCode::usage, "bench what? expected wire, codec, server or link", "motley bench --help"};
    };
  });
  add_wire(*command, chosen);
  add_codec(*command, chosen);
  add_server(*command, chosen);
  add_bench_link(*command, chosen);
}

}  // namespace motley::cli
