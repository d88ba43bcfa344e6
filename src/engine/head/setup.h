#pragma once
// What the machine and the models of speed are told of a run and of its model before it starts. Pure.

#include "cluster/coordinator_machine.h"
#include "engine/head/coordinator.h"
#include "engine/head/performance.h"

namespace motley::engine {

modes::RunConfig machine_config(const CoordinatorOptions& options, const ps::Server& server);
ContributionBytes contribution_bytes(const Layout& layout);
/// What a pass moves in its busier direction, of a whole version.
double busier_share(const Layout& layout, const CoordinatorOptions& options);

}  // namespace motley::engine
