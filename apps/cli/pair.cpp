#include "pair.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "runtime/inputs.h"
#include "runtime/pairing.h"
#include "runtime/worker/find_head.h"
#include "runtime/worker/machine_key.h"
#include "standard_streams.h"
#include "transport/addresses.h"

namespace motley::cli {
namespace {

using discovery::FoundHead;
using Heads = std::vector<FoundHead>;
constexpr Duration kLookTime = std::chrono::seconds(3);

// Nothing is under way while somebody is asked: Ctrl-C ends the program.
std::string ask(const std::string& question, Context& context) {
  context.stop.on_request([] { std::_Exit(exit_status(ErrorCode::interrupted)); });
  std::fprintf(stderr, "%s", question.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  context.stop.on_request({});
  return answer;
}

std::string list_of_heads(const Heads& heads) {
  std::string list;
  for (const FoundHead& head : heads) list += (list.empty() ? "" : ", ") + runtime::name_among(head, heads);
  return list;
}

Error none_found() {
  return {ErrorCode::network, "no head of this network shows a code",
          "on the first machine motley train … --pair, or motley invite --pair where it trains already; else motley "
          "join TOKEN; motley doctor says what may be in the way"};
}

Result<FoundHead> choose_head(const Heads& heads, const std::string& wanted, bool somebody_answers, Context& context) {
  const Heads named = wanted.empty() ? heads : runtime::heads_named(wanted, heads);
  if (heads.empty()) return none_found();
  if (named.empty()) {
    return Error{ErrorCode::input,
                 "there is no head '" + wanted + "' in this network; there are " + list_of_heads(heads),
                 "--head " + runtime::name_among(heads.front(), heads)};
  }
  if (named.size() == 1) return named.front();
  if (!somebody_answers) {
    return Error{ErrorCode::usage, "join which head? there are " + list_of_heads(named),
                 "--head " + runtime::name_among(named.front(), named)};
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    std::fprintf(stderr, "%2zu  %-32s %s\n", i + 1, runtime::name_among(named[i], named).c_str(),
                 named[i].addresses.front().c_str());
  }
  const std::string answer = ask("which one? ", context);
  std::size_t number = 0;
  const auto [end, problem] = std::from_chars(answer.data(), answer.data() + answer.size(), number);
  if (problem != std::errc{} || end != answer.data() + answer.size() || number < 1 || number > named.size()) {
    return Error{
        ErrorCode::usage,
        "expected a number from 1 to " + std::to_string(named.size()) + ", found '" + answer.substr(0, 32) + "'",
        "--head " + runtime::name_among(named.front(), named)};
  }
  return named[number - 1];
}

}  // namespace

Result<fleet::JoinToken> pair_for_token(const PairWords& words, const std::string& name, Context& context) {
  const bool somebody_answers = is_terminal(kIn) && is_terminal(kErr);
  if (words.code.empty() && !somebody_answers) {
    return Error{ErrorCode::usage,
                 "join what? expected a token, --token-file FILE, or --code CODE of a head that pairs",
                 "motley join motley1.…"};
  }
  std::optional<std::string> code;
  if (!words.code.empty()) {
    code = runtime::read_code(words.code);
    if (!code) return Error{ErrorCode::usage, "--code: expected six digits, as the head shows them", "--code 123456"};
  }
  const auto found = [&words](const Heads& heads) {
    return !words.head.empty() && !runtime::heads_named(words.head, heads).empty();
  };
  context.sink->take(report::Note{"looking for heads in this network"});
  const Result<Heads> heads = runtime::find_heads(kLookTime, found, context.stop);
  if (!heads) return heads.error();
  const Result<FoundHead> head = choose_head(*heads, words.head, somebody_answers, context);
  if (!head) return head.error();
  if (!code) {
    code = runtime::read_code(ask("the code that " + head->name + " shows: ", context));
    if (!code) return Error{ErrorCode::usage, "expected six digits, as the head shows them", "motley join"};
  }
  const Result<fleet::JoinToken> token = runtime::pair_with(
      *head, *code, name.empty() ? transport::machine_name() : name, runtime::machine_identity(runtime::key_file()));
  if (token) context.sink->take(report::Note{"paired with " + head->name});
  return token;
}

}  // namespace motley::cli
