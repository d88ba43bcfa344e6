#include <filesystem>
#include <fstream>
#include <iostream>

#include "commands.h"
#include "manners_options.h"
#include "pair.h"
#include "standard_streams.h"

namespace motley::cli {
namespace {

struct JoinArguments {
  std::string token, token_file, script;
  PairWords pairing;
  bool fetch = false, yes = false, install = false;
  runtime::JoinOptions options;
};

/// Whether the script of a run can be offered: running it is asked for at a terminal.
bool somebody_answers() { return is_terminal(kIn) && is_terminal(kErr); }

/// What is wrong with it, for CLI11; empty: nothing.
std::string is_origin(const std::string& word) {
  const std::size_t scheme = word.starts_with("https://") ? 8 : word.starts_with("http://") ? 7 : word.size();
  const bool host = scheme < word.size() && word.find_first_of("/?#@\\ ", scheme) == std::string::npos;
  return host || word == "public" ? "" : "expected public or http(s)://HOST[:PORT], found " + word;
}

/// Where a token is looked for again; empty: it was no file's.
std::string file_of(const std::string& word, const std::string& file) {
  std::error_code ignored;
  const bool is_file =
      word != "-" && !word.starts_with(fleet::JoinToken::kPrefix) && std::filesystem::is_regular_file(word, ignored);
  return file.empty() && is_file ? word : file;
}

Result<SharedBytes> fetch(runtime::JoinOptions& options, JoinDisplay& display, Context& context) {
  runtime::JoinEvents events = display.events();
  for (bool again = true;;) {
    again = false;
    events.other_token = [&](const fleet::JoinToken& token) { options.token = token, again = true; };
    Result<SharedBytes> files = runtime::fetch_script(options, events, context.stop);
    if (!again) return files;
  }
}

Status run_join(JoinArguments& arguments, Context& context) {
  const bool has_token = !arguments.token.empty() || !arguments.token_file.empty();
  const bool pairs = !arguments.pairing.code.empty() || !arguments.pairing.head.empty();
  if ((!arguments.token.empty() && !arguments.token_file.empty()) || (has_token && pairs)) {
    return Error{ErrorCode::usage, "join what? expected one of a token, --token-file FILE, and --code CODE",
                 "motley join motley1.…"};
  }
  Result<fleet::JoinToken> token = has_token ? read_token(arguments.token, arguments.token_file, context)
                                             : pair_for_token(arguments.pairing, arguments.options.name, context);
  if (!token) return token.error();
  arguments.options.token = std::move(*token);
  arguments.options.token_file = absolute(file_of(arguments.token, arguments.token_file));
  if (!arguments.script.empty()) {
    if (arguments.fetch) return Error{ErrorCode::usage, "--fetch brings the script: expected none", ""};
    return hand_over(context, {.role = Role::join, .script = arguments.script, .join = arguments.options});
  }
  if (arguments.fetch && !context.has_python) return needs_python("--fetch");
  if (arguments.fetch || (context.has_python && somebody_answers())) {
    JoinDisplay display(*context.sink);
    Result<SharedBytes> files = fetch(arguments.options, display, context);
    if (files) {
      return hand_over(context, {.role = Role::join,
                                 .join = arguments.options,
                                 .fetched = std::move(*files),
                                 .agreed = arguments.yes,
                                 .installs = arguments.install});
    }
    if (arguments.fetch || files.error().code != ErrorCode::mismatch) return files.error();
  }
  return lend(arguments.options, context);
}

}  // namespace

Result<fleet::JoinToken> read_token(const std::string& word, const std::string& file, Context& context) {
  if (!file.empty()) {
    return runtime::wait_for_token_file(file, context.stop,
                                        [&](const std::string& text) { context.sink->take(report::Note{text}); });
  }
  std::string text = word;
  if (text == "-") {
    std::getline(std::cin, text);
  } else if (std::ifstream in(text); text.size() < 200 && in) {
    std::getline(in, text);
  }
  return fleet::parse_token(text);
}

Status lend(runtime::JoinOptions options, Context& context) {
  JoinDisplay display(*context.sink);
  runtime::JoinEvents events = display.events();
  Status status;
  for (bool again = true; again;) {
    again = false;
    events.other_token = [&](const fleet::JoinToken& token) { options.token = token, again = true; };
    status = runtime::join(options, *context.models, events, context.stop);
  }
  if (status) context.sink->take(report::Note{left_text(display)});
  return status;
}

void add_join(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<JoinArguments>();
  CLI::App* command = app.add_subcommand("join", "lend this machine's devices to a run");
  command->add_option("token", arguments->token,
                      "the token that `motley train` printed; a file that holds it; or - for standard input. Without "
                      "one: pairs with a head of this network that shows a code (train --pair)");
  command->add_option("script", arguments->script, "the Python script, where the run is one of a script");
  CLI::Option* fetch =
      command->add_flag("--fetch", arguments->fetch,
                        "have the script's files from the head; lists them and asks before it runs them. At a terminal "
                        "that is offered without it");
  command->add_flag("--yes", arguments->yes, "with --fetch: do not ask");
  command
      ->add_flag(
          "--install", arguments->install,
          "with --fetch: install the packages that the script needs and this machine lacks, in an environment of "
          "its own")
      ->needs(fetch);
  command->add_option("--token-file", arguments->token_file, "wait for FILE and read the token in it");
  command->add_option("--code", arguments->pairing.code, "without a token: the code that the head shows");
  command->add_option("--head", arguments->pairing.head, "likewise: its name, where several heads show one");
  command->add_option("--device", arguments->options.devices, "cpu, cuda:0 or mps; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", arguments->options.threads, "CPU threads of a CPU worker")
      ->check(CLI::Range(1U, 4096U));
  command
      ->add_option("--data-dir", arguments->options.data_directories,
                   "a directory below which the run may have its data files opened; may be repeated (default: none)")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--origin", arguments->options.origins,
                   "where files of the run are from an http(s):// address, have them from there too, beside the head: "
                   "public, which is any address but those of local networks, or http(s)://HOST[:PORT], which is that "
                   "host, wherever it is; may be repeated")
      ->check(is_origin)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  add_name(*command, arguments->options.name);
  add_manners(*command, arguments->options.manners);
  add_yielding(*command, arguments->options.yield);
  command
      ->add_option("--set", arguments->options.overrides,
                   "data.KEY=VALUE where the data are elsewhere on this machine; train.micro_batch=N")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->callback([&chosen, arguments] {
    const bool only_script = arguments->script.empty() && is_script(arguments->token);  // --token-file
    if (only_script) std::swap(arguments->token, arguments->script);
    chosen = [arguments](Context& context) { return run_join(*arguments, context); };
  });
}

}  // namespace motley::cli
