#!/bin/bash
# slurm_rate.sh N CLIENTS: submits N held jobs with sbatch, CLIENTS at a time, to a private Slurm
# controller on this machine; prints jobs per second. As root: it runs in namespaces of its own, in
# which only the loopback is up, and everything ends with it. No slurmd is needed for held jobs.
set -euo pipefail
n=$1 clients=$2
if [ -z "${XCE_SLURM_DIR:-}" ]; then
  XCE_SLURM_DIR=$(mktemp -d "${TMPDIR:-/tmp}/slurm.XXXXXX")
  trap 'rm -rf "$XCE_SLURM_DIR"' EXIT
  export XCE_SLURM_DIR
  unshare -n -m -u -p -f --mount-proc --kill-child --propagation private "$0" "$@" &
  child=$!
  trap 'kill -9 "$child"; exit 143' TERM INT
  wait "$child"
  exit
fi
d=$XCE_SLURM_DIR
cd "$d"
ip link set lo up
ip addr add 127.0.0.2/8 dev lo # with 127.0.0.1 alone, look-ups of addresses find nothing
hostname ctl1
printf '127.0.0.1 localhost n1\n127.0.0.2 ctl1\n' >hosts
mount --bind "$d/hosts" /etc/hosts
mkdir state spool munge
chmod 755 "$d"
head -c 1024 /dev/urandom >munge/key
chmod 600 munge/key
munged -F --force --socket="$d/munge/s" --key-file="$d/munge/key" --pid-file="$d/munge/pid" \
  --log-file="$d/munge/log" --seed-file="$d/munge/seed" >munge/out 2>&1 &
cat >slurm.conf <<CONF
ClusterName=beside
SlurmctldHost=ctl1(127.0.0.2)
CommunicationParameters=NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$d/munge/s
CredType=cred/munge
StateSaveLocation=$d/state
SlurmdSpoolDir=$d/spool
SlurmctldPidFile=$d/ctl.pid
SlurmctldLogFile=$d/ctl.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
MailProg=/bin/true
DebugFlags=NO_CONF_HASH
PriorityType=priority/basic
SchedulerParameters=defer,batch_sched_delay=0,max_rpc_cnt=150
MaxJobCount=200000
SlurmctldDebug=error
NodeName=n1 NodeAddr=127.0.0.1 CPUs=64 RealMemory=64000 State=UNKNOWN
PartitionName=p Nodes=n1 Default=YES MaxTime=INFINITE State=UP
CONF
touch cgroup.conf
export SLURM_CONF=$d/slurm.conf
until_true() { # COMMAND...: within 20 s
  for _ in $(seq 400); do
    if timeout 2 "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  echo "slurm_rate.sh: '$*' did not succeed within 20 s: $(tail -n 3 ctl.log munge/out)" >&2
  return 1
}
until_true test -S munge/s
slurmctld -D -i -f "$SLURM_CONF" >ctl.out 2>&1 &
until_true sbatch -H -Q -o /dev/null --wrap true
begin=$EPOCHREALTIME
seq "$n" | xargs -P "$clients" -I {} sbatch -H -Q -o /dev/null --wrap true >/dev/null
end=$EPOCHREALTIME
awk -v n="$n" -v b="$begin" -v e="$end" 'BEGIN { printf "%.1f\n", n / (e - b) }'
