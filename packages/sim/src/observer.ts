/**
 * A world reports to its observer what each step uses and which step made it possible. `explore` learns from this which steps could have come in
 * another order; other runs have no observer. Steps are numbered as in the trace, from 1; 0 is the code that ran before the first.
 */
import type { PossibleChoice } from './schedule.js'

/** The counts of fault rules, which steps use: see `StepObserver.touch`. */
export const FAULT_RULES = '(fault rules)'

export interface StepObserver {
  /** A step begins, after the schedule's answer if it was asked. The step before it is over, with all that followed from it. */
  begin(choice: PossibleChoice): void
  /** Before `begin`: nothing else could happen, so time advances. Events that are possible from here on were not before. */
  jump(): void
  /** The step could not have come before that one, which put there what it begins with, or opened the link. */
  cause(step: number): void
  /** The step uses what belongs to a worker: its clock, an end of a link; or something else with a name, whose uses must keep their order. */
  touch(name: string): void
  /** The step does something that every worker may notice: one crashes, or is linked again. */
  touchAll(): void
  /** The step puts something into a channel, named by its label. */
  put(channel: string): void
  /** The step depends on whether something is in flight in a channel. */
  look(channel: string): void
  /** An event of the step, as the trace has it. */
  event(kind: string, from: string, to: string, hash: number): void
}
