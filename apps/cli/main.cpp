// The `motley` program.

#include "program.h"

int main(int argc, char** argv) { return motley::cli::run_program(argc, argv); }
