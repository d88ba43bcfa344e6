#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "commands.h"
#include "resource_policy_options.h"
#include "runtime/inputs.h"
#include "runtime/pairing.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/pair_with.h"
#include "standard_streams.h"
#include "transport/addresses.h"
#include "transport/crypto.h"

namespace motley::cli {
namespace {

struct JoinArguments {
  std::vector<std::string> words;  // as they were typed; behind them, where the next ones lie
  std::string where, code, script;
  std::string token_file;
  bool fetch = false, yes = false, install = false;
  runtime::JoinOptions options;
};

/// Whether something can be asked for at a terminal.
bool somebody_answers() { return is_terminal(kIn) && is_terminal(kErr); }

/// WHERE, then the code in one piece or several, then the script.
void sort_words(JoinArguments& arguments) {
  std::vector<std::string>& words = arguments.words;
  if (!words.empty() && is_script(words.back())) {
    arguments.script = words.back();
    words.pop_back();
  }
  if (!words.empty()) arguments.where = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) arguments.code += words[i];
}

bool is_file(const std::string& word) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(word, ignored);
}
bool is_token(const std::string& word) { return word == "-" || word.starts_with(fleet::JoinToken::kPrefix); }

/// Where a token is looked for again; empty: it was no file's.
std::string file_of(const std::string& word, const std::string& file) {
  return file.empty() && !is_token(word) && is_file(word) ? word : file;
}

// Nothing is under way while somebody is asked: Ctrl-C ends the program.
std::string ask(const std::string& question, Context& context) {
  context.stop.on_request([] { std::_Exit(exit_status(ErrorCode::interrupted)); });
  std::fprintf(stderr, "%s", question.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  context.stop.on_request({});
  return answer;
}

/// From the head at an address, by the code that it shows.
Result<fleet::JoinToken> pair_for_token(JoinArguments& arguments, Context& context) {
  const std::string& where = arguments.where;
  const Result<transport::Endpoint> head = runtime::head_endpoint(where);
  if (!head) return head.error();
  if (arguments.code.empty() && !somebody_answers()) {
    return Error{ErrorCode::usage, "join " + where + ": expected the code that the head shows behind its address",
                 "motley join " + where + " 123456"};
  }
  const transport::Identity own = runtime::machine_identity(runtime::key_file());
  if (runtime::machine_identity(runtime::key_file()).spki != own.spki) {
    return Error{ErrorCode::io, "join " + where + ": this machine's key, which the head lets in, cannot be kept here",
                 "set MOTLEY_CACHE to a directory that can be written; or motley join TOKEN"};
  }
  std::string typed = arguments.code.empty() ? ask("the code that " + where + " shows: ", context) : arguments.code;
  std::optional<std::string> code = runtime::read_code(typed);
  transport::wipe(typed);
  transport::wipe(arguments.code);
  if (!code) {
    return Error{ErrorCode::usage, "join " + where + ": expected six digits, as the head shows them",
                 "motley join " + where + " 123456"};
  }
  const std::string& name = arguments.options.name;
  const Result<fleet::JoinToken> token =
      runtime::pair_with(*head, *code, name.empty() ? transport::machine_name() : name, own);
  transport::wipe(*code);
  if (token) context.sink->take(report::Note{"paired with " + where});
  return token;
}

Result<fleet::JoinToken> token_of(JoinArguments& arguments, Context& context) {
  const std::string& where = arguments.where;
  const bool has_file = !arguments.token_file.empty(), has_code = !arguments.code.empty();
  const bool is_of_token = has_file || is_token(where) || (!has_code && is_file(where));
  const bool is_clear = has_file ? where.empty() : !where.empty() && !runtime::read_code(where);
  if (!is_clear || (is_of_token && has_code)) {
    return Error{ErrorCode::usage,
                 "join what? expected the address and the code that the head prints, or its token, or --token-file "
                 "FILE",
                 "motley join ADDRESS CODE; motley invite --pair on the head shows another code"};
  }
  return is_of_token ? read_token(where, arguments.token_file, context) : pair_for_token(arguments, context);
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
  Result<fleet::JoinToken> token = token_of(arguments, context);
  if (!token) return token.error();
  arguments.options.token = std::move(*token);
  arguments.options.token_file = absolute(file_of(arguments.where, arguments.token_file));
  if (!arguments.script.empty()) {
    if (arguments.fetch) return Error{ErrorCode::usage, "--fetch brings the script: expected none", ""};
    return hand_over(context, {.role = Role::join, .script = arguments.script, .join = arguments.options});
  }
  // A recipe comes by its name; of a script it is asked whether it is to run here.
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
  command->add_option(
      "where", arguments->words,
      "ADDRESS CODE, as `motley train` prints them; or its token, a file that holds the token, or - for "
      "standard input. Behind it the Python script, where the run is one of a script; recipes need none");
  CLI::Option* fetch =
      command->add_flag("--fetch", arguments->fetch,
                        "have the script's files from the head, or fail; lists them and asks before it runs them. At a "
                        "terminal that is offered without it");
  command->add_flag("--yes", arguments->yes, "with --fetch: do not ask");
  command
      ->add_flag(
          "--install", arguments->install,
          "with --fetch: install the packages that the script needs and this machine lacks, in an environment of "
          "its own")
      ->needs(fetch);
  command->add_option("--token-file", arguments->token_file, "wait for FILE and read the token in it");
  command->add_option("--device", arguments->options.devices, "cpu, cuda:0 or mps; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", arguments->options.threads, "CPU threads of a CPU worker")
      ->check(CLI::Range(1U, 4096U));
  add_name(*command, arguments->options.name);
  add_resource_policy(*command, arguments->options.resource_policy);
  add_yielding(*command, arguments->options.yield);
  command
      ->add_option("--set", arguments->options.overrides,
                   "train.micro_batch=N: samples that a device of this machine takes at once")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->callback([&chosen, arguments] {
    sort_words(*arguments);
    chosen = [arguments](Context& context) { return run_join(*arguments, context); };
  });
}

}  // namespace motley::cli
