/** Random distributed programs, some seeds: the simulation has the bits of the inlined program. `npm run soak -- --programs 100000` runs more. */
import { expect, test } from '@jest/globals'
import { generate, goldenPrograms, type Program, passesOf, programDifferences, type Step, stepsOf } from '@postgrad/testing-cases/programs'
import { inlinedRun, oraclesOf, simulatedRun } from './oracle.suite.js'
import { goldenProblems, overCrashes, overPrograms } from './soak.suite.js'

const SEEDS = 12
const CRASHES = 30
const SECOND = 12
/** Of the programs with PyTorch’s numbers; `programs.soak.test.ts` runs all. */
const GOLDENS_EVERY = 3
/** Those with PyTorch's numbers begin at 0. */
const FIRST = 1000

test(`TK-60, DA-46 ${SEEDS} programs of scalars, all sends used: the bits of the inlined program`, async () => {
  const { failed, legal } = await overPrograms(SEEDS, { first: FIRST, scalars: true, tidy: true })
  expect(failed).toEqual([])
  expect(legal).toBe(SEEDS)
})

test(`TK-60, DA-46, DA-34, DA-23 ${SEEDS} programs of all kinds: the bits of the inlined program in SMART, in FAST too, where passes that leave a send unused end in UNUSED_SEND`, async () => {
  const { failed, legal, ends } = await overPrograms(SEEDS, { first: FIRST })
  expect(failed).toEqual([])
  expect(legal).toBeGreaterThan(SEEDS / 3)
  expect(legal).toBeLessThan(SEEDS)
  expect(Object.keys(ends).sort()).toEqual(['UNUSED_SEND', 'well'])
  for (const passes of Object.values(ends)) expect(passes).toBeGreaterThan(SEEDS)
})

test(`TK-60, DA-34, DA-48 ${SEEDS} programs of at least three roots and two passes: the bits of the inlined program, under two orders of delivery each`, async () => {
  const { failed } = await overPrograms(SEEDS, { first: FIRST + SEEDS, runs: 2, rootsMin: 3, passesMin: 2 })
  expect(failed).toEqual([])
})

test(`DA-66 ${SECOND} programs with one more pass over the gradients of the others: the bits of the inlined program`, async () => {
  let changed = 0
  for (let seed = FIRST; seed < FIRST + SECOND; seed++) {
    const program = generate(seed)
    const first = await inlinedRun(program)
    const oracle = await inlinedRun(program, { second: true })
    if (oracle.bits !== first.bits) changed++
    const { problem } = await simulatedRun(program, oracle, seed, 'smart', { second: true })
    expect({ seed, problem }).toEqual({ seed, problem: null })
  }
  expect(changed).toBeGreaterThan(SECOND / 2)
})

const goldens = goldenPrograms()
const PARTS = [0, 100, 200, 300, 400, 500]

test('TK-62 there are 560 programs with PyTorch’s numbers, 60 of them with several roots and passes', () => {
  expect(goldens).toHaveLength(560)
  for (const { program } of goldens.slice(500)) {
    const passes = passesOf(program)
    expect(passes.length).toBeGreaterThan(1)
    for (const { roots } of passes) expect(roots.length).toBeGreaterThan(2)
  }
})

test.each(PARTS)('TK-62 programs from the %ith, inlined and under an order of delivery, agree with PyTorch’s numbers', async (from) => {
  for (const golden of goldens.slice(from, from + 100).filter((_, at) => at % GOLDENS_EVERY === 0))
    expect({ seed: golden.seed, problems: await goldenProblems(golden) }).toEqual({ seed: golden.seed, problems: [] })
})

test(`TK-63, DA-24, DA-27 ${CRASHES} programs whose workers crash: right gradients or WORKER_DIED, and right ones on the survivors`, async () => {
  const { failed, crashed, ends } = await overCrashes(CRASHES)
  expect(failed).toEqual([])
  expect(crashed).toBeGreaterThan(CRASHES / 4)
  expect(ends.WORKER_DIED).toBeGreaterThan(CRASHES / 10)
})

test('the comparison with PyTorch can fail', async () => {
  const golden = goldens[0]!
  const { outcome } = await inlinedRun(golden.program)
  const [first] = outcome.roots
  const off = { ...outcome, roots: [{ ...first!, data: first!.data.map((x) => x + 1e-4) }, ...outcome.roots.slice(1)] }
  expect(programDifferences(off, golden).problems).toHaveLength(1)
  const missing = programDifferences({ ...outcome, gradients: {} }, golden).problems
  expect(missing).toHaveLength(Object.keys(golden.torch.gradients).length)
  const several = goldens.slice(500).find(({ torch }) => torch.read!.length > 0)!
  const read = (await inlinedRun(several.program)).outcome
  expect(programDifferences({ ...read, read: read.read.map(() => ({})) }, several).problems.length).toBeGreaterThan(0)
  expect(programDifferences({ ...read, read: [] }, several).problems.length).toBeGreaterThan(0)
})

test('TK-61 a seed gives one program, plain JSON, and a tidy one uses all that it sends', async () => {
  for (let seed = 0; seed < 40; seed++) {
    const program = generate(seed, { tidy: true })
    expect(JSON.parse(JSON.stringify(program))).toEqual(program)
    expect(generate(seed, { tidy: true })).toEqual(program)
    expect((await oraclesOf(program)).fast.isFastLegal).toBe(true)
  }
})

/** What there is of passes, and where. */
function noteBackward(program: Program, note: (kind: string) => void): void {
  const { blocks, backward = [] } = program
  const isServed = (step: Step) => step.k === 'call'
  const made = new Map(
    [...stepsOf(blocks[0]!.steps)].flatMap((step) => (step.k === 'call' ? step.outs.map((out) => [out, step]) : [])) as [number, Step][],
  )
  for (const { roots, grads } of passesOf(program)) {
    note(`${Math.min(3, roots.length)} roots`)
    if (new Set(roots).size < roots.length) note('root twice')
    note(grads === null ? 'no gradients of roots' : 'gradients of roots')
  }
  for (const step of stepsOf(backward)) {
    note(`backward ${step.k}`)
    if (step.k === 'pass' && step.roots.some((id) => made.has(id))) note('root that is a remote result')
    if (step.k === 'call' && blocks[step.block]!.on !== 0) note('pass of another worker')
    if (step.k === 'par' && step.branches.every(([first]) => first?.k === 'pass')) note('passes at once of one worker')
    if (step.k === 'par' && step.branches.some(([first]) => isServed(first!))) note('passes at once of several workers')
  }
  const passes = backward.filter(({ k }) => k === 'pass' || k === 'call')
  if (passes.filter(({ k }) => k === 'pass').length > 1) note('passes of one worker in turn')
  if (passes.some(isServed) && !passes.every(isServed)) note('passes of several workers in turn')
  const read = backward.findIndex(({ k }) => k === 'read')
  if (read > 0 && backward.slice(read).some(({ k }) => k === 'pass' || k === 'par')) note('read between passes')
}

test('TK-61 the programs have all that a pass may meet', () => {
  const kinds = new Map<string, number>()
  const note = (kind: string) => kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  for (let seed = 0; seed < 200; seed++) {
    const program = generate(seed)
    const { blocks, roots, params } = program
    noteBackward(program, note)
    const callsOf = blocks.map(() => 0)
    for (const { steps } of blocks) for (const step of stepsOf(steps)) if (step.k === 'call' || step.k === 'remote') callsOf[step.block]!++
    for (const [i, { steps }] of blocks.entries())
      if (callsOf[i]! >= 3 && steps.some(({ k }) => k === 'param')) note('parameter of three calls')
    if (roots.length > 1) note('several roots')
    for (const { dtype } of params) note(dtype)
    for (const { on, steps } of blocks) {
      for (const step of stepsOf(steps)) {
        note(step.k)
        if (step.k === 'call' && blocks[step.block]!.on === on) note('call to itself')
        if (step.k === 'call' && step.outs.length > 1) note('several results')
        if (step.k === 'call' && [...stepsOf(blocks[step.block]!.steps)].some(({ k }) => k === 'call')) note('nested calls')
        if (step.k === 'call' && blocks[step.block]!.steps.some(({ k }) => k === 'here')) note('reference passed on')
        if (step.k === 'par' && step.branches.filter(([first]) => first?.k === 'call').length > 1) note('concurrent calls')
        if (step.k === 'op' && step.op === 'detach') note('detached')
      }
    }
  }
  const wanted = [
    'param',
    'op',
    'call',
    'remote',
    'here',
    'fail',
    'par',
    'several roots',
    'call to itself',
    'several results',
    'nested calls',
    ...['1 roots', '2 roots', '3 roots', 'root twice', 'no gradients of roots', 'gradients of roots', 'root that is a remote result'],
    ...['backward pass', 'backward read', 'backward write', 'backward par', 'pass of another worker', 'passes at once of one worker'],
    ...['passes at once of several workers', 'passes of one worker in turn', 'passes of several workers in turn', 'read between passes'],
  ]
  for (const kind of [...wanted, 'reference passed on', 'concurrent calls', 'parameter of three calls', 'detached', 'float32', 'float64']) {
    expect([kind, kinds.get(kind) ?? 0]).toEqual([kind, expect.any(Number)])
    expect(kinds.get(kind) ?? 0).toBeGreaterThan(10)
  }
})

test('DA-23 a send that nobody uses, of a worker that takes no part, does FAST no harm', async () => {
  const program = generate(101146, { single: true })
  expect((await simulatedRun(program, (await oraclesOf(program)).fast, 101146, 'fast')).problem).toBeNull()
})

test('the comparison can fail: other numbers are noticed, and so is an unused send that FAST lets pass', async () => {
  const programs = Array.from({ length: 50 }, (_, seed) => generate(seed, { tidy: true }))
  const program = programs.find((one) => one.params.length > 0 && !JSON.stringify(one).includes('"k":"remote"'))!
  const oracle = await inlinedRun(program)
  const other = { ...program, params: program.params.map((param) => ({ ...param, data: param.data.map((x) => x + 1e-6) })) }
  expect((await simulatedRun(other, oracle, 0, 'smart')).problem).toContain('the inlined program gives')
  const last = Math.max(...passesOf(program).map(({ nr }) => nr))
  const without = await inlinedRun(program, { unused: new Set([last]) })
  expect(without.outcome.ends[last]).toBe('UNUSED_SEND')
  expect((await simulatedRun(program, without, 0, 'fast')).problem).toContain('UNUSED_SEND')
})
