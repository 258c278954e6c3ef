/** The exit codes of all commands; `--help` and the guide list them. Signals have 128 + their number, as in shells. */
export const EXIT = {
  done: 0,
  /** A worker's main threw, a check of `doctor` failed, nothing was found. */
  failed: 1,
  usage: 2,
  /** No worker has begun: the program is missing, or this process could not join others. */
  notStarted: 3,
  /** A worker died, or rank 0, which serves the store, is gone: another try may do. */
  lost: 4,
  byPipe: 141,
} as const

export const EXIT_BY_SIGNAL = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export const EXIT_HELP = `Exit codes:
  0    every worker is done
  1    a worker failed: its main threw, or took longer than --timeout
  2    the command line makes no sense
  3    could not start, or could not join the others
  4    lost: a worker died, or the others are out of reach; the same command may do better
  130  stopped by Ctrl-C; 143: by SIGTERM; 129: by SIGHUP; 141: nobody reads the output any more`
