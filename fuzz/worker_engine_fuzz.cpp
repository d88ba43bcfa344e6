// Workers of a coordinator whose messages are changed, dropped, repeated and invented: they end the session with a
// named error, and what they are told to compute is there.

#include <cstdint>
#include <span>

#include "disturbed_run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  motley::fuzz::Run(std::span(data, size), motley::fuzz::Towards::workers).go();
  return 0;
}
