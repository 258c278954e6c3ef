/** Commands for two processes, and the kinds of connection between them: `process-pair.ts` sends the commands, each process runs `pair-entry.ts`. */
import type { Credentials } from '@postgrad/transport/internal'

/** Between the two processes: a bare socket, a link over one, or a link of an exchange, which has a session. */
export type Between = 'socket' | 'link' | 'exchange'
export type Over = 'unix' | 'tcp'

/** Of messages, in bytes. */
export interface Sizes {
  readonly request: number
  readonly reply: number
}

export interface PairCommand extends Sizes {
  /** `connect`: a new connection each time, a message there and one back over it, and its end. */
  readonly work: 'roundTrip' | 'pipelined' | 'connect'
  readonly n: number
}

/** Each process's first message. */
export interface PairBoot {
  readonly role: 'measures' | 'answers'
  readonly between: Between
  readonly over: Over
  readonly credentials: Credentials | null
  /** Where the Unix socket is. */
  readonly folder: string
  /** Where the other listens, for the one that measures; 0: no port, or it is the one that listens. */
  readonly port: number
}

/** From a process: the port that it listens on, 0 for anything else that is done, or the seconds that it took. */
export interface PairAnswer {
  readonly value: number
}

/** How many messages are under way at once when they are pipelined: as many as calls in our row. */
export const WINDOW = 1000
/** The names of the two, and the cluster that they are. */
export const CLUSTER = 'bench'
export const NAMES = { measures: 'measures', answers: 'answers' } as const
