// The coordinator among workers whose messages are changed, dropped, repeated and invented: it ends their sessions with
// a named error, and nothing else happens.

#include <cstdint>
#include <span>

#include "disturbed_run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  motley::fuzz::Run(std::span(data, size), motley::fuzz::Towards::coordinator).go();
  return 0;
}
