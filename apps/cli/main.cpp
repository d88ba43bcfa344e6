// The `motley` program.

#include "http/retrieve.h"
#include "program.h"

int main(int argc, char** argv) {
  return motley::cli::run_program(argc, argv, {.retrieve = motley::http::retriever()});
}
