#!/usr/bin/env bash
# Ray 2.60.0: ray.init() on one machine changes what `ray start --head` does there later.
#
# Behaviour: a local ray.init() writes ~/.ray/auth_token. From then on `ray start --head` by the same user asks every node for that token.
# `ray start --address` does not look for the file: it fails with InvalidAuthToken, also on the same machine with the same home.
# Without the file the same two commands form a cluster. RAY_AUTH_MODE=disabled for `ray start --head` brings that back.
set -euo pipefail
here=$(mktemp -d)
export HOME=$here/home RAY_USAGE_STATS_ENABLED=0 RAY_TMPDIR=$here/r
unset RAY_AUTH_MODE RAY_AUTH_TOKEN RAY_AUTH_TOKEN_PATH RAY_ADDRESS
mkdir "$HOME"
python3 -m venv "$here/env"
PATH=$here/env/bin:$PATH
trap 'ray stop --force >/dev/null 2>&1 || true; rm -rf "$here"' EXIT
pip install --quiet --disable-pip-version-check ray==2.60.0

port=26379
join() { # whether a second node gets in
  port=$((port + 1))
  env "$@" ray start --head --port=$port --num-cpus=1 --include-dashboard=false --object-store-memory=80000000 >"$here/head" 2>&1
  local came=yes
  ray start --address=127.0.0.1:$port --num-cpus=1 --object-store-memory=80000000 >"$here/node" 2>&1 || came=no
  ray stop --force >/dev/null 2>&1
  echo $came
}

before=$(join NOTHING=1)
python -c 'import ray; ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000); ray.shutdown()' >/dev/null 2>&1
[ -s "$HOME/.ray/auth_token" ] && left=yes || left=no
after=$(join NOTHING=1)
grep -q InvalidAuthToken "$here/node" && why=InvalidAuthToken || why="something else"
disabled=$(join RAY_AUTH_MODE=disabled)

echo "a second node joins before ray.init(): $before; ray.init() left a token: $left; it joins afterwards: $after ($why);"
echo "with RAY_AUTH_MODE=disabled: $disabled"
[ "$before $left $after $why $disabled" = "yes yes no InvalidAuthToken yes" ]
