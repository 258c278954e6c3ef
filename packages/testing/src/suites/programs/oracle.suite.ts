/**
 * Runs a program in two ways: the inlined run, whose bits are the oracle, and the simulated one under an order of delivery. A run is right
 * when roots and gradients have the oracle's bits on every worker and nothing is left.
 */
import type { Node } from '@postgrad/autograd/internal'
import type { Tensor } from '@postgrad/tensor'
import { bitsText } from '@postgrad/testing-cases'
import {
  allowOnly,
  type Gate,
  type Mode,
  type Outcome,
  type Program,
  passesOf,
  runProgram,
  useDevice,
} from '@postgrad/testing-cases/programs'
import { expectClean } from '../../check/expect-clean.js'
import { inlined } from '../../inlined/inlined.js'
import { CallBoundary, type InlinedCaller } from '../../inlined/inlined-caller.js'
import { simulate } from '../../simulate/simulate.js'

export interface Oracle {
  readonly outcome: Outcome
  /** Equal exactly when the bits are. */
  readonly bits: string
  /** Whether all passes ended well: FAST must give the gradients then. */
  readonly isFastLegal: boolean
}

/** Which passes end with UNUSED_SEND: none in SMART; in FAST those that leave a send unused, or, by their numbers, those of which that is known. */
export type Unused = 'none' | 'fast' | ReadonlySet<number>

export interface OracleOptions {
  readonly second?: boolean
  /** Default none. */
  readonly unused?: Unused
  /** Where all tensors are. Default the cpu. */
  readonly device?: string
}

export async function inlinedRun(
  program: Program,
  { second = false, unused = 'none', device = 'cpu' }: OracleOptions = {},
): Promise<Oracle> {
  return await inlined({ workers: program.workers }, async (cluster) => {
    const workers = cluster.workers.map(({ name }) => cluster.on(name))
    for (const { run, runtime } of workers) {
      await run(allowOnly, gateOf(unused, runtime.caller as InlinedCaller))
      await run(useDevice, device, false)
    }
    const outcome = await workers[0]!.run(runProgram, JSON.stringify(program), { second })
    return { outcome, bits: bitsText(outcome), isFastLegal: Object.values(outcome.ends).every((end) => end === null) }
  })
}

/** Both oracles of a program: without any UNUSED_SEND, and as FAST has it. They are one run where FAST runs all passes. */
export async function oraclesOf(program: Program, device = 'cpu'): Promise<Readonly<Record<Mode, Oracle>>> {
  const fast = await inlinedRun(program, { unused: 'fast', device })
  return { fast, smart: fast.isFastLegal ? fast : await inlinedRun(program, { device }) }
}

/**
 * For the passes that `worker` begins. FAST demands of each worker that takes part in a pass (its root, and who sent what it reaches), that all its messages
 * whose tensors require grad are reached from the roots (DA-23).
 */
function gateOf(unused: Unused, { worker, program }: InlinedCaller): Gate | null {
  if (unused === 'none') return null
  if (unused !== 'fast') return (nr) => !unused.has(nr)
  const isLegal = (roots: readonly Tensor[]): boolean => {
    const reached = boundariesFrom(roots)
    const { recordedCrossings } = program
    return [worker.info.name, ...reached.keys()].every((sender) => reached.get(sender) === recordedCrossings.get(sender))
  }
  // A pass that was called for begins when all that was sent with its call has left.
  return (_, roots, isMain) => (isMain ? isLegal(roots) : Promise.resolve().then(() => isLegal(roots)))
}

/** How many recorded messages of each worker the roots depend on. */
function boundariesFrom(roots: readonly Tensor[]): Map<string, number> {
  const seen = new Set<Node>()
  const stack = roots.map((root) => root.gradFn as Node)
  const counts = new Map<string, number>()
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    if (node instanceof CallBoundary) counts.set(node.sender.info.name, (counts.get(node.sender.info.name) ?? 0) + 1)
    for (const edge of node.nextEdges) if (edge !== null) stack.push(edge.node)
  }
  return counts
}

export interface SimulatedRun {
  /** The problem; null if there is none. */
  readonly problem: string | null
  /** Of the order of delivery. */
  readonly hash: string
}

/** One order of delivery against the oracle of its mode. */
export async function simulatedRun(
  program: Program,
  oracle: Oracle,
  seed: number,
  mode: Mode,
  { second = false, overtaking = false, device = 'cpu' } = {},
): Promise<SimulatedRun> {
  const text = JSON.stringify(program)
  const simulation = await simulate({ workers: program.workers, seed, world: { overtaking } }, async (sim) => {
    if (device !== 'cpu') for (const { name } of sim.workers) await sim.on(name).run(useDevice, device)
    return await sim.on('worker0').run(runProgram, text, { mode, second })
  })
  // A `remote` that nobody awaits may begin after its context was released, and nothing uses its reference then: a dead letter (RREF-37).
  const hasRemotes = text.includes('"k":"remote"')
  expectClean(simulation, { allow: hasRemotes ? ['deadLetters'] : [] })
  const { result, trace } = simulation
  let { bits } = oracle
  // Messages of such a `remote` may come after a FAST pass has counted: it does not miss them then.
  if (mode === 'fast' && hasRemotes) {
    const late = passesOf(program).some(({ nr }) => oracle.outcome.ends[nr] !== null && result.ends[nr] === null)
    if (late) bits = (await inlinedRun(program, { unused: unusedIn(result), device })).bits
  }
  const problem = bitsText(result) === bits ? null : `${mode}: ${bitsText(result)}, the inlined program gives ${bits}`
  return { problem, hash: trace.hash }
}

const unusedIn = ({ ends }: Outcome): ReadonlySet<number> =>
  new Set(
    Object.keys(ends)
      .map(Number)
      .filter((nr) => ends[nr] !== null),
  )
