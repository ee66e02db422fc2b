#!/bin/bash
# Times a comparison of 10,000 models as one process and in 1, 2 and 4 parts at once: wall time, processor time, memory.
# The answers must be equal. ROUNDS sets the rounds, each with all runs in turn.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
layers=$(seq -s, 1 10)
widths=$(seq -s, 64 64 640)
words=$(seq -s, 512 64 6848)
request=(configs/hybrid/tiny.yaml --set "model.num_layers=$layers" --set "model.hidden_size=$widths" --set "model.vocab_size=$words")
minimind() { /usr/bin/time -f "$1: %e s, %U s of a processor, %M KB" node bin/run.js compare "${@:2}" 2>>"$folder/times" >"$folder/out"; }
since() { echo "$1: $(($(date +%s%N) / 1000000 - $2)) ms"; }
for round in $(seq "${ROUNDS:-1}"); do
  echo "round $round, load $(cut -d' ' -f1-3 /proc/loadavg)"
  start=$(($(date +%s%N) / 1000000))
  minimind single "${request[@]}" -q --json -o "$folder/single-$round.json"
  since single "$start"
  for parts in 1 2 4; do
    plan=$folder/plan-$round-$parts.json
    start=$(($(date +%s%N) / 1000000))
    minimind "$parts parts, plan" "${request[@]}" -q --parts "$parts" --plan "$plan"
    since "$parts parts, plan" "$start"
    start=$(($(date +%s%N) / 1000000))
    for part in $(seq "$parts"); do minimind "$parts parts, part $part" --plan "$plan" --part "$part" -q & done
    wait
    since "$parts parts at once" "$start"
    start=$(($(date +%s%N) / 1000000))
    minimind "$parts parts, finish" --plan "$plan" --finish -q --json -o "$folder/finish.json"
    since "$parts parts, finish" "$start"
    cmp "$folder/finish.json" "$folder/single-$round.json"
    rm "$folder/finish.json"
  done
done
cat "$folder/times"
ls -l "$folder"/*.json "$folder"/.plan*/*
