#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "commands.h"
#include "durations.h"
#include "runtime/head/invitations.h"
#include "runtime/head/pairing.h"

namespace motley::cli {
namespace {

namespace fs = std::filesystem;

struct InviteArguments {
  bool once = false, pair = false;
  std::string run, whom;
  std::vector<std::string> hosts{};
  std::optional<Duration> good_for{};
};

// As named; else the newest under runs/ that has a token.
std::string run_directory(const std::string& named) {
  if (!named.empty()) return named;
  std::string newest = "runs";
  std::error_code ignored;
  std::optional<fs::file_time_type> newest_time;
  for (const fs::directory_entry& entry : fs::directory_iterator("runs", ignored)) {
    std::error_code none;
    const fs::file_time_type time = fs::last_write_time(entry.path() / "token", none);
    if (none || (newest_time && *newest_time >= time)) continue;
    newest_time = time;
    newest = entry.path().string();
  }
  return newest;
}

Status show_code(const std::string& directory, const Context& context) {
  const Result<runtime::PairingCode> code = runtime::open_pairing(directory);
  if (!code) return code.error();
  if (context.json) {
    print_json_line(nlohmann::ordered_json{{"event", "pairing"},
                                           {"code", code->digits},
                                           {"addresses", code->addresses},
                                           {"until_unix_s", code->until_unix_s}}
                        .dump());
  } else {
    std::printf("on another machine, in the next ten minutes:\n  pip install motley\n  motley join %s %s\n",
                code->addresses.front().c_str(), code->digits.c_str());
  }
  return {};
}

Status run_invite(const InviteArguments& arguments, Context& context) {
  const std::string alone = arguments.once ? "--once" : arguments.pair ? "--pair" : "";
  if (!alone.empty() && !arguments.hosts.empty()) {
    return Error{ErrorCode::usage, "invite " + alone + ": expected no host, found " + arguments.hosts.front(),
                 "motley invite " + alone + "; or motley invite HOST (motley of the Python package)"};
  }
  if (arguments.good_for && !arguments.once) {
    return Error{ErrorCode::usage, "invite: --expires is of the token that --once prints",
                 "motley invite --once --expires 12h"};
  }
  if (arguments.pair) return show_code(run_directory(arguments.run), context);
  if (!arguments.once) {
    return Error{ErrorCode::usage, "to invite machines over ssh is for the motley of the Python package",
                 "pip install .; or motley invite --once, or --pair; or ssh HOST motley join - < runs/NAME-1/token"};
  }
  const Result<fleet::JoinToken> token = runtime::invite_once(run_directory(arguments.run), arguments.good_for);
  if (!token) return token.error();
  const std::string text = fleet::to_text(*token);
  if (context.json) {
    print_json_line(nlohmann::ordered_json{{"event", "invitation"}, {"join", text}}.dump());
  } else {
    std::printf("for one machine:  motley join %s\n", text.c_str());
  }
  return {};
}

}  // namespace

void add_invite(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<InviteArguments>();
  CLI::App* command = app.add_subcommand(
      "invite", "let one more machine join (--once), or others over ssh (motley of the Python package)");
  CLI::Option* once =
      command->add_flag("--once", arguments->once, "print a token that lets in one machine and no other");
  command
      ->add_flag("--pair", arguments->pair,
                 "print an address and a code of six digits, by which one machine joins in the next ten minutes")
      ->excludes(once);
  command->add_option("--run", arguments->run, "the directory of the run (default: the newest under runs/)");
  add_expires(*command, arguments->good_for);
  command->add_option("host", arguments->hosts, "user@host: whom to invite over ssh (motley of the Python package)");
  command->callback(
      [&chosen, arguments] { chosen = [arguments](Context& context) { return run_invite(*arguments, context); }; });
}

void add_revoke(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<InviteArguments>();
  CLI::App* command = app.add_subcommand("revoke", "take a token back, or send a machine away");
  command->add_option("whom", arguments->whom, "a token, or the name of a worker or of a machine")->required();
  command->add_option("--run", arguments->run, "the directory of the run (default: the newest under runs/)");
  command->callback([&chosen, arguments] {
    chosen = [arguments](Context& context) -> Status {
      const std::string directory = run_directory(arguments->run);
      if (Status done = runtime::revoke(directory, arguments->whom); !done) return done;
      context.sink->take(report::Note{"revoked in " + directory + "; its head looks once a second"});
      return {};
    };
  });
}

}  // namespace motley::cli
