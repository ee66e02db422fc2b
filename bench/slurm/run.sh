#!/bin/bash
# Converts a checkpoint in 8 parts on a Slurm of two nodes on this machine, with what goes wrong on a cluster: the disk full,
# a task killed, one cancelled, one requeued, a node drained, a part run twice at once. Each of them must hit a task that
# runs and holds a lock, which the script checks, and tries again with another task. After each, --finish must name exactly
# what is missing. The end must be the files of a single run.
# Needs root, Debian's slurm-wlm, munge and parallel, and `npm run build`. bench/slurm/run.sh FOLDER [GiB=4]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
gibibytes=${2:-4}
minimind=("$(command -v node)" "$(cd "$here/../.." && pwd)/bin/run.js")
convert=("${minimind[@]}" convert-checkpoint)
. "$here/cluster.sh"

disk=$work/disk
parts=8
cd "$work" || exit 1
fail() { echo "FAILED: $*"; exit 1; }
step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }
say() { printf '%6s s  %s\n' "$SECONDS" "$*"; }
idle() { while [ -n "$(squeue -h)" ]; do sleep 0.5; done; }
built() { echo "$disk"/.out.parts-*; }

# Each task writes when it starts and ends, and on which node.
cat >task.sh <<END
#!/bin/bash
say() { echo "\$1 \${SLURM_ARRAY_JOB_ID}_\$SLURM_ARRAY_TASK_ID \$SLURMD_NODENAME \$(date +%s.%N) \${2:-}" >>"$work/tasks.log"; }
say start
${convert[*]} --plan "$work/plan.json" --part auto --quiet
code=\$?
say end \$code
exit \$code
END
array() { sbatch --parsable --array="$1" --cpus-per-task=2 --mem=512M --requeue --output="$work/task-%A-%a.log" task.sh; }

# What is missing by the files alone, without minimind: parts with a file that is absent, or not as long as planned.
absent() {
  node -e '
    const fs = require("node:fs");
    const [plan, folder] = process.argv.slice(1);
    const { parts, output } = JSON.parse(fs.readFileSync(plan, "utf8"));
    const bytes = new Map(output.files.map((file) => [file.name, file.bytes]));
    const size = (name) => fs.statSync(`${folder}/files/${name}`, { throwIfNoEntry: false })?.size;
    const receipts = fs.existsSync(`${folder}/receipts`)
      ? fs.readdirSync(`${folder}/receipts`).join("\n") : "";
    const isThere = (name) => size(name) === bytes.get(name) && receipts.includes(`file-${name}-`);
    console.log(parts.filter(({ files }) => !files.every(isThere)).map(({ part }) => part).join(" "));
  ' plan.json "$(built)"
}

# 2,4-6 → 2 4 5 6
numbers() { tr ',' '\n' <<<"$1" | while IFS=- read -r from to; do [ -n "$from" ] && seq "$from" "${to:-$from}"; done | xargs; }

# --finish must refuse, and name exactly what is missing. Sets $left, as an array of Slurm.
finish_names() {
  local expected answer code
  expected=$(absent)
  answer=$("${convert[@]}" --plan plan.json --finish | head -1)
  code=${PIPESTATUS[0]}
  [ -n "$expected" ] || fail "nothing is missing: the fault stopped no part"
  left=$(sed -n 's/.*missing: --array=\([0-9,-]*\)$/\1/p' <<<"$answer")
  [ "$(numbers "$left")" = "$expected" ] || fail "--finish names '$left', missing are '$expected': $answer"
  "${convert[@]}" --plan plan.json --finish --quiet >/dev/null
  code=$?
  [ "$code" = 1 ] || fail "--finish ends with $code instead of 1"
  say "--finish: exit code 1, --array=$left, which is exactly what is missing"
}

same() { (cd "$disk/out" && sha256sum -- *) | diff - single.sha256 || fail "other bytes than the single run"; say "PASSED: $*"; }

# Tasks of a job that run and hold a lock, one a line: number, node, process.
holders() {
  local lock pid env
  for lock in "$(built)"/locks/*.lock; do
    pid=$(grep -o '"pid":[0-9]*' "$lock" 2>/dev/null | cut -d: -f2)
    [ -n "$pid" ] || continue
    env=$({ tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null) || continue
    grep -qx "SLURM_ARRAY_JOB_ID=$1" <<<"$env" || continue
    echo "$(sed -n 's/^SLURM_ARRAY_TASK_ID=//p' <<<"$env") $(sed -n 's/^SLURMD_NODENAME=//p' <<<"$env") $pid"
  done | sort -u
}

# Waits for a task that runs on a node, holds a lock and was not hit before: sets $task, $node, $pid. Fails when the job ends.
victim() {
  local wanted=${1:-.}
  while [ -n "$(squeue -h -j "$job")" ]; do
    while read -r task node pid; do
      [[ " $hit " == *" $task "* ]] && continue
      [[ $node == $wanted || $wanted == . ]] || continue
      [ "$(squeue -h -j "${job}_$task" -o '%T %N')" = "RUNNING $node" ] || continue
      return 0
    done < <(holders "$job")
    sleep 0.05
  done
  return 1
}

field() { scontrol show job "${job}_$task" | tr ' ' '\n' | sed -n "s/^$1=//p" | head -1; }
is_absent() { [[ " $(absent) " == *" $task "* ]]; }
gone() { for _ in $(seq 200); do [ -d "/proc/$pid" ] || return 0; sleep 0.05; done; return 1; }
# Until Slurm has seen the end of a task.
settled() { for _ in $(seq 200); do case $(field JobState) in RUNNING | COMPLETING) sleep 0.05 ;; *) return 0 ;; esac; done; return 1; }

requeued() {
  victim || return 1
  scontrol requeue "${job}_$task" && gone && settled || return 1
  [ "$(field Restarts)" = 1 ] && is_absent || return 1
  restarted=$task
  say "requeued task $task on $node while it held a lock: Restarts=1, $(field JobState), its part is not done"
}
killed() {
  victim || return 1
  # As the kernel does when memory is short.
  kill -KILL "$pid" && gone && settled || return 1
  # A process that a signal ended has 128 + the signal.
  [ "$(field JobState)" = FAILED ] && grep -q "^end ${job}_$task .* 137$" tasks.log && is_absent || return 1
  say "killed task $task on $node while it held a lock: FAILED, exit by signal 9, its part is not done"
}
cancelled() {
  victim || return 1
  scancel "${job}_$task" && gone && settled || return 1
  [ "$(field JobState)" = CANCELLED ] && is_absent || return 1
  say "cancelled task $task on $node while it held a lock: CANCELLED, its part is not done"
}
drained() {
  victim n2 || return 1
  scontrol update nodename=n2 state=drain reason=test
  drained_at=$(date +%s.%N)
  if [ "$(sinfo -h -n n2 -o %T)" = draining ] && [ -d "/proc/$pid" ] && is_absent; then
    say "drained n2 while task $task ran there and held a lock: draining"
    return 0
  fi
  scontrol update nodename=n2 state=resume
  return 1
}
twice() {
  victim || return 1
  "${convert[@]}" --plan plan.json --part "$task" --json >twice.json 2>twice.log &
  local second=$!
  # Both run: the second has started when it has its own threads, a second after its start at the latest.
  sleep 1
  local both=no
  [ -d "/proc/$pid" ] && [ -d "/proc/$second" ] && is_absent && both=yes
  wait "$second" || fail "the second runner of part $task: $(cat twice.log twice.json)"
  [ $both = yes ] || return 1
  local there
  there=$(node -p 'JSON.parse(require("fs").readFileSync("twice.json")).ran.unitsThere')
  [ "$there" -ge 1 ] || fail "the second runner of part $task did all of it again"
  say "part $task by two runners at once: both succeed, the second left $there units to the first"
}

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
rm -rf single plan.json task-*.log tasks.log
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
"${convert[@]}" in "$disk/out" "${flags[@]}" --parts $parts --plan plan.json || fail "plan"
start_cluster "$work/cluster" || exit 1

step 'the disk is full'
free=$(df --output=avail -B1 "$disk" | tail -1)
fallocate -l "$((free - single_bytes / 3))" "$disk/other-data"
array 1-$parts >/dev/null; idle
full=$(grep -l 'ENOSPC\|no space' task-*.log | wc -l)
grep -h 'error:' task-*.log | head -2
[ "$full" -ge 1 ] || fail "no task says that the disk is full"
say "$full tasks say that the disk is full"
rm "$disk/other-data"
finish_names
array "$left" >/dev/null; idle
[ -z "$(absent)" ] || fail "still missing: $(absent)"
say "the array of these numbers has done them"

step 'the job as --launch prints it'
"${convert[@]}" --plan plan.json --launch slurm >job.sh
cat job.sh

step 'a task requeued, killed, cancelled, a node drained, a part twice at once'
left_to_do="requeued killed drained cancelled twice"
named=
for round in 1 2 3; do
  [ -n "$left_to_do" ] || break
  rm -rf "$disk"/.out.parts-*
  hit='' restarted='' drained_at='' resumed_at=''
  job=$(array 1-$parts)
  not_yet=''
  for fault in $left_to_do; do
    done_here=no
    for _ in 1 2 3; do
      if $fault; then done_here=yes; hit="$hit $task"; break; fi
      [ -n "$(squeue -h -j "$job")" ] || break
      say "$fault: task ${task:-none} was not hit, trying another one"
      hit="$hit ${task:-}"
    done
    [ $done_here = yes ] || not_yet="$not_yet $fault"
  done
  left_to_do=$not_yet
  idle
  resumed_at=$(date +%s.%N)
  if [ -n "$drained_at" ]; then
    late=$(awk -v from="$drained_at" -v to="$resumed_at" '$1 == "start" && $3 == "n2" && $4 > from + 1 && $4 < to' tasks.log)
    scontrol update nodename=n2 state=resume
    [ -z "$late" ] || fail "a task started on the drained node: $late"
    say "no task started on n2 after it was drained"
  fi
  if [ -n "$restarted" ]; then
    task=$restarted
    [ "$(grep -c "^start ${job}_$task " tasks.log)" = 2 ] || fail "task $task did not start twice"
    [ "$(field JobState) $(field Restarts)" = "COMPLETED 1" ] || fail "task $task: $(field JobState)"
    say "the requeued task $task started twice, and completed"
  fi
  [ -z "$(absent)" ] || { finish_names; named=yes; array "$left" >/dev/null; idle; }
  [ -z "$(absent)" ] || fail "still missing: $(absent)"
  [ -z "$left_to_do" ] || say "not hit in this round: $left_to_do"
done
[ -z "$left_to_do" ] || fail "not hit in three rounds: $left_to_do"
[ -n "$named" ] || fail "the faults stopped no part"

step 'what was missing has been done, and --finish after it'
nice -n 10 "${convert[@]}" --plan plan.json --finish --check || fail "finish"
same "the files of the array are those of the single run"

step 'the whole job with --submit: two phases and the end'
rm -rf "$disk"/out "$disk"/.out.parts-*
start=$(date +%s.%N)
"${convert[@]}" --plan plan.json --launch slurm --submit; idle
echo "8 parts on 2 nodes: $(echo "$(date +%s.%N) - $start" | bc) s"
same "--launch slurm --submit"

step 'GNU parallel'
rm -rf "$disk"/out "$disk"/.out.parts-*
start=$(date +%s.%N)
"${convert[@]}" --plan plan.json --launch parallel --tasks 2 --submit | tail -3
echo "8 parts, 2 at a time: $(echo "$(date +%s.%N) - $start" | bc) s"
same "--launch parallel --submit"
