#!/bin/bash
# A fleet on Slurm: sbatch docs/fleet/slurm.sh v2.4 v2.9 v2.15
#
# The first node has Ray's head and the driver, and measures nothing. Each other node is a machine.
# When the job ends or is cancelled, submit it again: it continues. Home and the clone are on a
# shared file system; the releases are on a disk of each node, where twelve copies take 75 GB.
#SBATCH --job-name=torchcompile-suite
#SBATCH --nodes=9
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=24:00:00
# Two minutes before the end the driver is asked to stop: it cancels all work in order.
#SBATCH --signal=B:TERM@120
set -euo pipefail

own=${LOCAL_DISK:-/tmp}/torchcompile-suite-$USER
export TORCHCOMPILE_SUITE_ENVIRONMENTS="$own/releases"
export TORCHCOMPILE_SUITE_FLEET="$own/fleet"

# Everybody who can reach a Ray cluster can run programs on it. The token is in the shared home
# folder. Ray lets other users read its file, unless the umask forbids that.
export RAY_AUTH_MODE=token
(umask 077 && ray get-auth-token --generate >/dev/null)

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
address="$head:6379"

# $(torchcompile-suite fleet node) must run on each machine: it prints that machine's own options.
# shellcheck disable=SC2016
srun --nodes=$((${#nodes[@]} - 1)) --ntasks-per-node=1 --exclude="$head" bash -c '
  # Anyone may have made a folder of that name in /tmp, with programs in it.
  mkdir -p -m 700 "$2"
  if [ -L "$2" ] || [ ! -O "$2" ]; then echo "$2 is not yours" >&2; exit 1; fi
  until ray status --address="$1" >/dev/null 2>&1; do sleep 2; done
  exec ray start --block --address="$1" $(torchcompile-suite fleet node)
' bash "$address" "$own" &

# shellcheck disable=SC2046
ray start --head --node-ip-address="$head" --port=6379 $(torchcompile-suite fleet node --head)
trap 'ray stop' EXIT

# In the background, because bash handles a signal only between two commands.
torchcompile-suite fleet run --address "$address" "$@" &
driver=$!
trap 'kill -TERM "$driver"' INT TERM
while true; do
  status=0
  wait "$driver" || status=$?
  # The signal ends `wait`. The driver needs some seconds more to end everything.
  kill -0 "$driver" 2>/dev/null || break
done
exit "$status"
