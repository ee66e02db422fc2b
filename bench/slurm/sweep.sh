#!/bin/bash
# Compares a few hundred models in 8 parts on a Slurm of two nodes on this machine, 4 tasks in an array. One task is killed
# while it holds a lock; another one later leaves half a line. --finish must name exactly the parts without results, and in
# the end print what the single run prints, byte for byte, in each format. Then the same for `--launch slurm --submit`.
# Needs root, Debian's slurm-wlm and munge, and `npm run build`. bench/slurm/sweep.sh FOLDER
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
compare=("$(command -v node)" "$(cd "$here/../.." && pwd)/bin/run.js" compare)
. "$here/cluster.sh"

# Names with all that a shell could read.
folder="$work/it's é {} \$HOME"
parts=8
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1
plan="$folder/swéep \"1\".json"
fail() { echo "FAILED: $*"; exit 1; }
step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }
idle() { while [ -n "$(squeue -h)" ]; do sleep 0.5; done; }
results() { echo "$folder"/.*.parts-*; }
absent() { for part in $(seq $parts); do [ -s "$(results)/part-$part.jsonl" ] || echo -n "$part "; done; }
numbers() { tr ',' '\n' <<<"$1" | while IFS=- read -r from to; do [ -n "$from" ] && seq "$from" "${to:-$from}"; done | tr '\n' ' '; }

# Runs the tasks of an array. Each writes a log of its own.
array() {
  printf '#!/bin/bash\nexec %s --plan %s --part auto -q\n' "$(printf '%q ' "${compare[@]}")" "$(printf '%q' "$plan")" >"$work/task.sh"
  sbatch --parsable --array="$1" --cpus-per-task=1 --mem=512M --requeue --output="$work/sweep-%a.log" "$work/task.sh"
}

# --finish must refuse, and name exactly what is missing. Sets $left.
finish_names() {
  local answer expected
  expected=$(absent)
  answer=$("${compare[@]}" --plan "$plan" --finish | head -1)
  [ "${PIPESTATUS[0]}" = 1 ] || fail "--finish does not end with 1: $answer"
  left=$(sed -n 's/.*missing: --array=\([0-9,-]*\)$/\1/p' <<<"$answer")
  [ "$(numbers "$left")" = "$expected" ] || fail "--finish names '$left', missing are '$expected'"
  echo "$answer: exactly the parts without results"
}

same() {
  local format
  for format in table json csv markdown; do
    "${compare[@]}" --plan "$plan" --finish -q --details --format $format -o finish.$format --force || fail "finish"
    cmp finish.$format single.$format || fail "another answer than the single run: $format"
  done
  echo "PASSED: $*: table, JSON, CSV and Markdown of the single run"
}

trap 'scancel -u root 2>/dev/null; stop_cluster' EXIT

step 'a plan, and a single run'
cp "$here/../../configs/hybrid/tiny.yaml" "tiny 'q'.yaml"
models=("tiny 'q'.yaml" hybrid/original --set "model.num_layers=$(seq -s, 1 150)" --sort=-parameters)
for format in table json csv markdown; do
  "${compare[@]}" "${models[@]}" -q --details --format $format -o single.$format || fail "single run"
done
"${compare[@]}" "${models[@]}" --parts $parts --plan "$plan" || fail plan
start_cluster "$work/cluster" || exit 1

step 'an array of 4 tasks, one killed while it holds a lock'
job=$(array 1-4)
pid=
while [ -n "$(squeue -h -j "$job")" ] && [ -z "$pid" ]; do
  for lock in "$(results)"/part-*.lock; do
    found=$(grep -o '"pid":[0-9]*' "$lock" 2>/dev/null | cut -d: -f2)
    # Not the first parts: some results are there then.
    [ -n "$found" ] && [[ $lock == */part-[5-8].lock ]] && kill -KILL "$found" && pid=$found && echo "killed the owner of ${lock##*/}" && break
  done
  sleep 0.05
done
[ -n "$pid" ] || fail "no task held a lock of the parts 5 to 8"
idle
sacct_state=$(scontrol show job "$job" | grep -c 'JobState=FAILED')
[ "$sacct_state" = 1 ] || fail "$sacct_state tasks failed instead of 1"
finish_names
array "$left" >/dev/null; idle
[ -z "$(absent)" ] || fail "still missing: $(absent)"
same "the array, and its missing parts again"

step 'half a line in the results of two parts'
truncate -s -100 "$(results)/part-2.jsonl"
truncate -s 1000 "$(results)/part-7.jsonl"
"${compare[@]}" --plan "$plan" --finish >broken.txt 2>&1 && fail "--finish accepts cut results"
cat broken.txt
grep -q -- '--array=2,7' broken.txt || fail "--finish does not name the parts 2 and 7"
array 2,7 >/dev/null; idle
same "the cut parts again"

step 'the whole job with --submit'
rm -rf "$(results)"
"${compare[@]}" --plan "$plan" --launch slurm --tasks 4 --submit; idle
[ -z "$(absent)" ] || fail "missing: $(absent)"
same "--launch slurm --submit"

step 'GNU parallel'
rm -rf "$(results)"
"${compare[@]}" --plan "$plan" --launch parallel --tasks 2 --submit | tail -1
same "--launch parallel --submit"
