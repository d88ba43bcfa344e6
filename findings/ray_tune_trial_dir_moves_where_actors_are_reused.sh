#!/usr/bin/env bash
# Ray 2.60.0: with reuse_actors=True, tune.get_context().get_trial_dir() is one kind of directory in a process's first trial and another in
# those that follow.
#
# Behaviour: in a function trainable, get_trial_dir() of the first trial of a process lies in driver_artifacts, as in all trials where
# processes are not reused. After the reset for the next trial it lies in working_dirs, which is the trial's current directory. So of three
# trials of one search the files are in two places: who looks for all of them in one, or expects them to be uploaded, finds some.
set -euo pipefail
here=$(mktemp -d)
python3 -m venv "$here/env"
PIP_CACHE_DIR=${PIP_CACHE_DIR:-$HOME/.cache/pip} "$here/env/bin/pip" install --quiet --disable-pip-version-check 'ray[tune]==2.60.0'
export HOME=$here RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled
trap 'rm -rf "$here"' EXIT
"$here/env/bin/python" - "$here" <<'PYTHON'
import sys

import ray
from ray import tune


def trial(config):
    tune.report({"x": config["x"], "place": tune.get_context().get_trial_dir()})


def places(reuse_actors):
    tuner = tune.Tuner(trial, param_space={"x": tune.grid_search([1, 2, 3])},
                       tune_config=tune.TuneConfig(reuse_actors=reuse_actors, max_concurrent_trials=1),
                       run_config=tune.RunConfig(storage_path=f"{sys.argv[1]}/results", name=f"reuse-{reuse_actors}", verbose=0))
    found = {result.metrics["x"]: result.metrics["place"].split("/")[-2] for result in tuner.fit()}
    return [found[x] for x in (1, 2, 3)]


ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False, _temp_dir=f"{sys.argv[1]}/r")
fresh, reused = places(False), places(True)
ray.shutdown()
print(f"where processes are fresh: {fresh}; where they are reused: {reused}")
assert fresh == ["driver_artifacts"] * 3 and reused == ["driver_artifacts", "working_dirs", "working_dirs"]
PYTHON
