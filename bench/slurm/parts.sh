#!/bin/bash
# Wall time of 1, 2 and 4 parts at once beside a single run, alternating. bench/slurm/parts.sh FOLDER [GiB=1] [rounds=3]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
convert=("$(command -v node)" "$(cd "$here/../.." && pwd)/bin/run.js" convert-checkpoint)
cd "$work"
[ -d in ] || node "$here/make-checkpoint.js" in "${2:-1}" 8
flags=(--to shared --no-config --shard-size 60MB --quiet)
now() { date +%s.%N; }
seconds() { echo "$(now) - $1" | bc; }
for round in $(seq "${3:-3}"); do
  start=$(now); "${convert[@]}" in single "${flags[@]}" >/dev/null; line="single $(seconds "$start")"
  for parts in 1 2 4; do
    start=$(now); "${convert[@]}" in out "${flags[@]}" --parts $parts --plan plan.json --force >/dev/null
    planned=$(seconds "$start"); pids=()
    start=$(now)
    for part in $(seq $parts); do "${convert[@]}" --plan plan.json --part "$part" --quiet >/dev/null & pids+=($!); done
    for pid in "${pids[@]}"; do wait "$pid"; done
    ran=$(seconds "$start"); start=$(now)
    "${convert[@]}" --plan plan.json --finish --quiet >/dev/null
    line="$line | $parts: plan $planned parts $ran finish $(seconds "$start")"
    diff <(cd single && sha256sum -- *) <(cd out && sha256sum -- *) >/dev/null || { echo 'other bytes'; exit 1; }
    rm -rf out .out.parts-*
  done
  rm -rf single
  echo "$line"
done
