#!/bin/bash
# Two machines with four workers each: sbatch postgrad.slurm.sh
#SBATCH --job-name=postgrad
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append

set -euo pipefail

# A key that all processes have; the folder is one that all machines see. Made once, readable by you alone.
KEY="$PWD/postgrad.key"
[ -f "$KEY" ] || npx postgrad keygen --out "$KEY"

# Each task is one worker. Rank, world size and master come from Slurm's variables.
# --kill-on-bad-exit: when one fails, Slurm ends the others, which would wait for it. Not npx: it would keep SIGTERM from postgrad.
srun --kill-on-bad-exit=1 \
  node_modules/.bin/postgrad run program.ts --key "$KEY" --join-timeout 120000 -- "$@" && exit

# Slurm itself starts a job again when a node fails. This does so when the run fails, or its time ends (--signal), three times at most. 2: the command line is wrong.
code=$?
[ "$code" -eq 2 ] || [ "${SLURM_RESTART_COUNT:-0}" -ge 3 ] || scontrol requeue "$SLURM_JOB_ID"
exit "$code"
