// The `motley` program.

#ifdef MOTLEY_WITH_HTTP
#include "http/retrieve.h"
#endif
#include "program.h"
#ifdef MOTLEY_WITH_TORCH
#include "torch_models.h"
#endif

int main(int argc, char** argv) {
  motley::cli::Services services;
#ifdef MOTLEY_WITH_HTTP
  services.retrieve = motley::http::retriever();
#endif
#ifdef MOTLEY_WITH_TORCH
  services.torch = motley::cli::libtorch_models();
#endif
  return motley::cli::run_program(argc, argv, services);
}
