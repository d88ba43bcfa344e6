#pragma once
// What a TorchScript file may do: it comes from another machine, and is a program. Called in this order: the archive,
// then torch loads it, then its operators, and only then is anything of it run. Any thread; check_operators() may
// throw.

#include <torch/script.h>

#include <istream>

#include "motley/result.h"

namespace motley::torch_adapter {

/// Loading the file runs nothing of it: no __setstate__, no class of a library, none of the other formats that torch
/// reads. The stream's position is where it was. Errors: input.
Status check_archive(std::istream& file);

/// Whatever of the module is called later uses operators that work on values alone. Errors: input; names them.
Status check_operators(const torch::jit::Module& module);

}  // namespace motley::torch_adapter
