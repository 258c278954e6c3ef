/**
 * What a program must give, and what it gives: the inlined run, whose bits are the oracle, and the simulated one under an order of delivery. A run is right
 * when roots and gradients have the oracle's bits on every worker and nothing is left.
 */
import type { Node } from '@postgrad/autograd/internal'
import { isPostgradError } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import { bitsText } from '../cases/case.js'
import { expectClean } from '../expect-clean.js'
import { inlined } from '../inlined.js'
import { CallBoundary, type InlinedWorker } from '../inlined-worker.js'
import { simulate } from '../simulate.js'
import { type Mode, runProgram } from './interpret.js'
import type { Outcome, Program } from './program.js'

export interface Oracle {
  readonly outcome: Outcome
  /** Equal exactly when the bits are. */
  readonly bits: string
  /**
   * Of the workers that take part in the pass, every message whose tensors require grad is reached from the roots: then FAST must give the gradients, else
   * UNUSED_SEND (DA-23).
   */
  readonly isFastLegal: boolean
}

export async function inlinedRun(program: Program, { second = false } = {}): Promise<Oracle> {
  return await inlined({ workers: program.workers }, async (cluster) => {
    let isFastLegal = true
    const worker = cluster.on('worker0')
    const outcome = await worker.run(runProgram, JSON.stringify(program), {
      second,
      onRoots: (roots: readonly Tensor[]) => {
        const reached = boundariesFrom(roots)
        const { recordedCrossings } = worker.runtime as InlinedWorker
        // Who sent nothing that is reached takes no part, but for the root.
        for (const sender of ['worker0', ...reached.keys()]) if (reached.get(sender) !== recordedCrossings.get(sender)) isFastLegal = false
      },
    })
    return { outcome, bits: bitsText(outcome), isFastLegal }
  })
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
  /** What is wrong; null if nothing is. */
  readonly problem: string | null
  /** Of the order of delivery. */
  readonly hash: string
}

/** One order of delivery against the oracle. SMART always gives the gradients, FAST where the program is legal. */
export async function simulatedRun(
  program: Program,
  oracle: Oracle,
  seed: number,
  mode: Mode,
  { second = false } = {},
): Promise<SimulatedRun> {
  const isLegal = mode === 'smart' || oracle.isFastLegal
  const text = JSON.stringify(program)
  let code: string | null = null
  const simulation = await simulate({ workers: program.workers, seed }, async (sim) => {
    try {
      return await sim.on('worker0').run(runProgram, text, { mode, second })
    } catch (error) {
      if (!isPostgradError(error) || error.code !== 'UNUSED_SEND') throw error
      code = error.code
      return null
    }
  })
  expectClean(simulation)
  const { result, trace } = simulation
  let problem: string | null = null
  // What a `remote` that nobody awaits sends may come after the pass has counted its dependencies: FAST does not miss it then.
  const mayBeLate = code === null && text.includes('"k":"remote"')
  if ((code === null) !== isLegal && !mayBeLate)
    problem = `${code ?? 'no error'}, although ${oracle.isFastLegal ? 'all' : 'not all'} sends are used`
  else if (result !== null && bitsText(result) !== oracle.bits) problem = `${bitsText(result)}, the inlined program gives ${oracle.bits}`
  return { problem: problem === null ? null : `${mode}: ${problem}`, hash: trace.hash }
}
