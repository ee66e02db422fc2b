# A Slurm cluster of two nodes on this machine, for `run.sh`: start_cluster FOLDER, stop_cluster. Needs root, and
# Debian's slurm-wlm and munge. Leaves /etc/slurm as it is.

start_cluster() {
  cluster=$1
  mkdir -p "$cluster/state" /run/munge
  chown munge /run/munge
  runuser -u munge -- munged --foreground --force >"$cluster/munged.log" 2>&1 &
  munged=$!
  sleep 1
  cat >"$cluster/slurm.conf" <<EOF
ClusterName=parts
SlurmctldHost=$(hostname -s)
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=cred_expire=15
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
MpiDefault=none
JobRequeue=1
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
EpilogMsgTime=0
CompleteWait=0
KillWait=1
NodeName=n[1-2] NodeHostname=$(hostname -s) Port=[17001-17002] CPUs=2 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
  export SLURM_CONF=$cluster/slurm.conf
  slurmctld -c
  slurmd -N n1
  slurmd -N n2
  for _ in $(seq 60); do
    [ "$(sinfo -h -o %T -N 2>/dev/null | grep -c idle)" = 2 ] && return
    sleep 1
  done
  echo "the nodes did not start: see $cluster" >&2
  return 1
}

stop_cluster() {
  for name in slurmd-n1 slurmd-n2 slurmctld; do
    [ -s "$cluster/$name.pid" ] && kill "$(cat "$cluster/$name.pid")" 2>/dev/null
  done
  kill "$munged" 2>/dev/null
  wait "$munged" 2>/dev/null
}
