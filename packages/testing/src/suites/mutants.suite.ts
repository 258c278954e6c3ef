/**
 * The kit's means to catch bugs, as functions of a seed that throw when something is wrong: `scripts/mutate.mjs` breaks the engine, the RRef protocol and the
 * session layer on purpose and asks which of these notices, after how many seeds.
 */
import { add, defineFunction, mul, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, expose, type RRef, remote } from '@postgrad/rpc'
import { Random } from '@postgrad/sim/internal'
import { type Tensor, tensor } from '@postgrad/tensor'
import {
  backwardCases,
  bitsText,
  CASE_WORKERS,
  documentationCases,
  makeLeaf,
  type NumberCase,
  type Plain,
  parameterOf,
  readGolden,
  readGradient,
  runCase,
  using,
} from '@postgrad/testing-cases'
import { expectSound } from '../check/expect-sound.js'
import { inlined } from '../inlined/inlined.js'
import { type SimulateOptions, simulate } from '../simulate/simulate.js'

/** Throws when the run of that seed shows something wrong. */
export type Catcher = (seed: number) => Promise<void>

let failing = false
const failsWhenTold = defineFunction({
  name: 'FailsWhenTold',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: (_ctx: unknown, grad: Tensor) => {
    if (failing) throw new TypeError('a backward that fails on purpose')
    return grad
  },
}) as unknown as (x: Tensor) => Tensor

/** A parameter of this worker, whose gradient does not depend on the next worker's part, which may fail. */
const through = (x: Tensor, mine: RRef<Tensor>, theirs: RRef<Tensor>): Promise<Tensor> =>
  using([mine, theirs], async () => {
    const far = await call('worker2', farther, [x, theirs])
    return add(far, mul(x, parameterOf(mine)))
  })
const farther = (x: Tensor, mine: RRef<Tensor>): Promise<Tensor> => using([mine], async () => failsWhenTold(mul(x, parameterOf(mine))))
const gradientsLeft = (contextId: bigint): number => distAutograd.getGradients(contextId).size
expose({ 'mutants.through': through, 'mutants.farther': farther, 'mutants.gradientsLeft': gradientsLeft })

/** A pass that fails at the third worker, then one over the same graph: on no worker is anything left of the first. */
async function failThenPass(): Promise<Record<string, Plain>> {
  const plainOf = (data: number[]): Plain => ({ dtype: 'float32', shape: [2], data })
  const refs = [remote('worker1', makeLeaf, [plainOf([3, 5])]), remote('worker2', makeLeaf, [plainOf([7, 11])])] as const
  try {
    // Made before another worker looks at them.
    await Promise.all(refs.map((ref) => ref.created()))
    return await distAutograd.context(async (ctx) => {
      const x = tensor([1, 2], { requiresGrad: true })
      const loss = sum(await call('worker1', through, [x, ...refs]))
      failing = true
      const ended = await ctx.backward([loss], { retainGraph: true }).catch((error: Error) => error)
      if (!(ended instanceof TypeError)) throw new Error(`a pass whose backward throws a TypeError ended with ${ended}`)
      failing = false
      // The word that the pass has failed goes before this call.
      const left = await call('worker1', gradientsLeft, [ctx.id])
      await ctx.backward([loss])
      const [mine, theirs] = await Promise.all([
        call('worker1', readGradient, [ctx.id, refs[0]]),
        call('worker2', readGradient, [ctx.id, refs[1]]),
      ])
      const grad = ctx.gradients().get(x)!
      return { x: { dtype: 'float32', shape: [2], data: [...(await grad.data())] }, mine, theirs, left: { ...plainOf([left]), shape: [1] } }
    })
  } finally {
    failing = false
    for (const ref of refs) ref.dispose()
  }
}
const scaled = (x: Tensor): Tensor => mul(x, 3)
const onward = async (x: Tensor): Promise<Tensor> => add(await call('worker2', scaled, [x]), mul(x, x))
expose({ 'mutants.scaled': scaled, 'mutants.onward': onward })

/** Two passes of one context at once, over the same workers. */
async function passesAtOnce(): Promise<Record<string, Plain>> {
  return distAutograd.context(async (ctx) => {
    const x = tensor([1, 2], { requiresGrad: true })
    const y = await call('worker1', onward, [x])
    const losses = [sum(y), sum(mul(y, y))]
    await Promise.all(losses.map((loss) => ctx.backward([loss], { retainGraph: true })))
    return { x: { dtype: 'float32', shape: [2], data: [...(await ctx.gradients().get(x)!.data())] } }
  })
}
expose({ failThenPass, passesAtOnce })

const CASES: readonly NumberCase[] = [
  { name: 'a pass behind one that failed', shows: 'a failed pass leaves nothing behind', main: failThenPass },
  { name: 'passes at once', shows: 'two passes of one context overlap', main: passesAtOnce },
  ...documentationCases,
  ...backwardCases,
]
const golden = readGolden()
const oracles = new Map<NumberCase, string>()

async function oracleOf(one: NumberCase): Promise<string> {
  let text = oracles.get(one)
  if (text === undefined) {
    text = bitsText(await inlined({ workers: CASE_WORKERS }, (cluster) => runCase(cluster, one, golden[one.name]?.inputs ?? {})))
    oracles.set(one, text)
  }
  return text
}

/** Every third run on bare links, the others under weather. */
function weather(seed: number): Pick<SimulateOptions, 'faults'> {
  if (seed % 3 === 0) return {}
  const probability = (1 + new Random(seed).below(30)) / 100
  return {
    faults: [
      { match: { probability }, do: 'drop' },
      { match: { probability }, do: 'duplicate', delayMs: seed % 2 === 0 ? 0 : 40 },
      { match: { probability }, do: 'delay', delayMs: 30 },
    ],
  }
}

/** A session gives up by then what is never acknowledged. */
const PATIENCE_MS = 40_000

/** PyTorch's cases in turn, each seed another: the bits of the inlined program, and all checkers of `expectSound`. */
async function soundCase(seed: number): Promise<void> {
  const one = CASES[seed % CASES.length]!
  const want = await oracleOf(one)
  const inputs = golden[one.name]?.inputs ?? {}
  const faults = weather(Math.floor(seed / CASES.length) + seed)
  const simulation = await simulate({ workers: CASE_WORKERS, seed, ...faults }, async (sim) => {
    const result = await runCase(sim, one, inputs)
    await new Promise<void>((resolve) => void sim.world.clock.setTimer(PATIENCE_MS, resolve))
    for (const { name } of sim.workers) {
      const taken = sim.workers.find(({ id }) => sim.on(name).runtime.deathOf(id) !== null)
      if (taken !== undefined) throw new Error(`${one.name}: ${taken.name} lives, and ${name} takes it for dead`)
    }
    return result
  })
  const got = bitsText(simulation.result)
  if (got !== want) throw new Error(`${one.name}: ${got}, the inlined program gives ${want}`)
  expectSound(simulation)
}

async function noProblems(problems: Promise<readonly string[]>): Promise<void> {
  const [first, ...more] = await problems
  if (first !== undefined) throw new Error(more.length === 0 ? first : `${first} (and ${more.length} more)`)
}

/**
 * By the name under which `scripts/mutations.mjs` has them; `call-programs` is rpc's own. Each is loaded when it is asked for: their programs expose functions
 * of the same names, so a process has one of them.
 */
export const CATCHERS: Readonly<Record<string, () => Promise<Catcher>>> = {
  'sound-cases': async () => soundCase,
  'random-programs': async () => {
    const { overPrograms } = await import('./programs/soak.suite.js')
    return (seed) => noProblems(overPrograms(1, { first: seed }).then(({ failed }) => failed))
  },
  'rref-model': async () => {
    const { runSeed } = await import('./rref-model.suite.js')
    return (seed) => runSeed(seed, null, false)
  },
  'faulty-programs': async () => {
    const { faultyProgram } = await import('./faulty-programs.suite.js')
    return (seed) => noProblems(faultyProgram(seed).then(({ problems }) => problems))
  },
  'fault-matrix': async () => {
    const { KINDS, underEveryFault } = await import('./fault-matrix.suite.js')
    return (seed) => underEveryFault(KINDS[seed % KINDS.length]!, Math.floor(seed / KINDS.length))
  },
  'session-lives': async () => (await import('./session-lives.suite.js')).sessionLives,
  membership: async () => (await import('./membership.suite.js')).membershipProgram,
  'group-programs': async () => {
    const { runGroupProgram } = await import('./group-programs.suite.js')
    return (seed) => noProblems(runGroupProgram(seed))
  },
}
