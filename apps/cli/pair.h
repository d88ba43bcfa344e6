#pragma once
// `motley join` without a token: finds the heads of this network, asks which one and for its code, and pairs with it.

#include <string>

#include "commands.h"

namespace motley::cli {

struct PairWords {
  std::string code, head;  // what need not be asked
};

/// `name`: of this machine. Errors: usage (nobody is there to be asked), input (no such head, no code), and those of
/// pairing.
Result<fleet::JoinToken> pair_for_token(const PairWords& words, const std::string& name, Context& context);

}  // namespace motley::cli
