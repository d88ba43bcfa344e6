// The `motley` program.

#ifdef MOTLEY_WITH_HTTP
#include "http/retrieve.h"
#endif
#include "program.h"

int main(int argc, char** argv) {
  motley::cli::Surroundings surroundings;
#ifdef MOTLEY_WITH_HTTP
  surroundings.retrieve = motley::http::retriever();
#endif
  return motley::cli::run_program(argc, argv, surroundings);
}
