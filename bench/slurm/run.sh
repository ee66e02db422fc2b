#!/bin/bash
# Converts a checkpoint in 8 parts on a Slurm of two nodes on this machine, with what goes wrong on a cluster: the disk full,
# a task killed, a node drained, a job requeued, a part run twice at once. The end must be the files of a single run.
# Needs root, Debian's slurm-wlm, munge and parallel, and `npm run build`. bench/slurm/run.sh FOLDER [GiB=4]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
gibibytes=${2:-4}
minimind=("$(command -v node)" "$(cd "$here/../.." && pwd)/bin/run.js")
convert=("${minimind[@]}" convert-checkpoint)
. "$here/cluster.sh"

disk=$work/disk
cd "$work" || exit 1
fail() { echo "FAILED: $*"; exit 1; }
step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }
missing() { "${convert[@]}" --plan plan.json --status --json | node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).array)'; }
array() { sbatch --parsable --array="$1" --cpus-per-task=2 --mem=512M --requeue --output="$work/task-%A-%a.log" \
  --wrap="exec ${convert[*]} --plan $work/plan.json --part auto ${2:-}"; }
idle() { while [ -n "$(squeue -h)" ]; do sleep 0.5; done; }
running() { for _ in $(seq 600); do [ -n "$(squeue -h -t R -o %i | grep "_$1\$")" ] && return; sleep 0.05; done; fail "task $1 never ran"; }

cleanup() {
  scancel -u root 2>/dev/null
  stop_cluster
  mountpoint -q "$disk" && umount -l "$disk"
  rm -f "$work/disk.img"
}
trap cleanup EXIT

step "a checkpoint of $gibibytes GiB, and a single run"
[ -d in ] || nice -n 10 node "$here/make-checkpoint.js" in "$gibibytes" 8
flags=(--to shared --no-config --shard-size "$((gibibytes * 50))MB")
rm -rf single plan.json task-*.log
start=$(date +%s.%N)
nice -n 10 "${convert[@]}" in single "${flags[@]}" --quiet >/dev/null || fail "single run"
echo "single run: $(echo "$(date +%s.%N) - $start" | bc) s"
(cd single && sha256sum -- *) >single.sha256
single_bytes=$(du -sb single | cut -f1)
rm -rf single

step 'a disk of its own for the output'
mkdir -p "$disk"
truncate -s "$((single_bytes * 5 / 4 + (256 << 20)))" disk.img
mkfs.ext4 -q -F disk.img && mount -o loop disk.img "$disk" || fail "mount"
"${convert[@]}" in "$disk/out" "${flags[@]}" --parts 8 --plan plan.json || fail "plan"
start_cluster "$work/cluster" || exit 1

step 'the disk is full'
free=$(df --output=avail -B1 "$disk" | tail -1)
fallocate -l "$((free - single_bytes / 3))" "$disk/other-data"
array 1-8 >/dev/null; idle
grep -l 'ENOSPC\|no space' task-*.log | wc -l | sed 's/$/ tasks say that the disk is full/'
grep -h 'error:' task-*.log | head -2
rm "$disk/other-data"
"${convert[@]}" --plan plan.json --finish | head -1
left=$(missing); echo "--finish names: --array=$left"
[ -n "$left" ] || fail "the full disk stopped nothing"

step 'the job as --launch prints it; then a task killed, a node drained, a job requeued, a part twice at once'
rm -rf "$disk"/.out.parts-*
cp plan.json first.json
"${convert[@]}" --plan plan.json --launch slurm >job.sh
cat job.sh
job=$(array 1-8)
running 1
"${convert[@]}" --plan plan.json --part 1 --quiet >twice.log 2>&1 &
twice=$!
scontrol requeue "${job}_1" && echo "requeued ${job}_1"
running 2; scancel --signal=KILL --full "${job}_2" && echo "killed ${job}_2"
scontrol update nodename=n2 state=drain reason=test && echo "drained n2"
running 4; scancel "${job}_4" && echo "cancelled ${job}_4"
"${convert[@]}" --plan plan.json --status | head -5
idle
wait "$twice"; head -1 twice.log
scontrol update nodename=n2 state=resume
left=$(missing); echo "missing: --array=$left"
"${convert[@]}" --plan plan.json --finish >finish.log; echo "--finish: exit code $?, $(head -1 finish.log)"
grep -q -- "--array=$left" finish.log || fail "--finish and --status differ"

step "what is missing again, and --finish after it"
if [ -n "$left" ]; then array "$left" >/dev/null; idle; fi
[ -z "$(missing)" ] || fail "still missing: $(missing)"
nice -n 10 "${convert[@]}" --plan plan.json --finish --check || fail "finish"
(cd "$disk/out" && sha256sum -- *) | diff - single.sha256 || fail "other bytes than the single run"
echo "PASSED: the files of the array are those of the single run"

step 'the whole job with --submit: two phases and the end'
rm -rf "$disk"/out "$disk"/.out.parts-*
start=$(date +%s.%N)
"${convert[@]}" --plan plan.json --launch slurm --submit; idle
echo "8 parts on 2 nodes: $(echo "$(date +%s.%N) - $start" | bc) s"
(cd "$disk/out" && sha256sum -- *) | diff - single.sha256 || fail "other bytes than the single run"
echo "PASSED: --launch slurm --submit"

step 'GNU parallel'
rm -rf "$disk"/out "$disk"/.out.parts-*
start=$(date +%s.%N)
"${convert[@]}" --plan plan.json --launch parallel --tasks 2 --submit | tail -3
echo "8 parts, 2 at a time: $(echo "$(date +%s.%N) - $start" | bc) s"
(cd "$disk/out" && sha256sum -- *) | diff - single.sha256 || fail "other bytes than the single run"
echo "PASSED: --launch parallel --submit"
