#pragma once
// Processes that mpirun or srun started with the same words: the first is the head of a run, the others join it.

#include <optional>
#include <string>

#include "program.h"
#include "report/sink.h"
#include "runtime/stop.h"

namespace motley::cli {

struct Rank {
  unsigned number = 0, count = 1;
  unsigned here = 0, count_here = 1;  // among those of this machine
  std::string job;  // the same for all ranks and different each time; empty: the launcher does not say
};

/// As the launcher's environment variables say: Open MPI's, Slurm's, or those of MPICH. None: this process is not one
/// of several.
Result<std::optional<Rank>> find_rank();

/// `launch` trains or plans. As the first rank it waits for the others and leaves them the token in a file for this
/// process's user alone, in the run's directory or, for a plan, in this one; as another rank it becomes the one that
/// joins, after waiting for that file.
Status take_rank(Launch& launch, runtime::StopSource& stop, report::Sink& sink);

}  // namespace motley::cli
