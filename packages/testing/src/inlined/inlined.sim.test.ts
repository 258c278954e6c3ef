/** Backward runs as the same workers, and gives the same bits, in the inlined program as in the simulation. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from '@jest/globals'
import { checkpoint, defineFunction, isGradEnabled, withAnomalyDetection } from '@postgrad/autograd'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { currentContext, type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose, remote, stream, workerLocal } from '@postgrad/rpc'
import { meet } from '@postgrad/rpc/internal'
import { rand, type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import type { TestCluster } from '../simulate/cluster.js'
import { simulate } from '../simulate/simulate.js'
import { inlined } from './inlined.js'

const WORKERS = 3
const SEEDS = 5

const store = new AsyncLocalStorage<string>()
const storeHere = () => store.getStore() ?? null
function* storeItems(): Generator<string | null> {
  yield storeHere()
  yield storeHere()
}
expose({ 'inlined.storeHere': storeHere, 'inlined.storeItems': storeItems })

const nameHere = (): string => currentWorker().info.name
const numberHere = (): number => 1 + currentWorker().info.id
const weight = workerLocal(() => tensor([numberHere() * 1.1]).requiresGrad_())
const factor = workerLocal(() => tensor([numberHere() * 0.7]))

/** Values that hooks saw, in any order. */
let notes: string[] = []

/** Where the running code is, with what only that worker has: its number, its random numbers, its gradients. */
function note(what: string): undefined {
  const gradients = [...(currentContext()?.gradients() ?? [])].map(([leaf, grad]) => `${leaf.toArray()}: ${grad.toArray()}`)
  const by = `${nameHere()}, factor ${factor().toArray()}, random ${rand([]).itemSync()}`
  notes.push(`${what} on ${by}, grad mode ${isGradEnabled()}, gradients [${gradients}]`)
}

const squared = defineFunction({
  name: 'Squared',
  forward: (ctx, x: Tensor) => {
    ctx.saveForBackward(x)
    return x.mul(x)
  },
  backward: (ctx, grad) => {
    note('backward of a custom function')
    return grad
      .mul(ctx.savedTensors[0]!)
      .mul(factor().mul(2))
      .mul(rand([1]))
  },
})

const parts = {
  checkpointed: (x: Tensor) => checkpoint((v) => v.mul(weight()).square().mul(factor()), x),
  dropped: (x: Tensor) =>
    checkpoint(
      (v) =>
        v
          .mul(weight())
          .mul(rand([1]))
          .square(),
      x,
    ),
  custom: (x: Tensor) => squared(x.mul(weight())),
  tensorHook: (x: Tensor) => {
    x.registerHook((grad) => {
      note('hook of what was received')
      return grad.mul(factor())
    })
    const y = x.mul(weight())
    y.registerHook((grad) => {
      note('hook of what is sent')
      return grad.mul(factor())
    })
    return y
  },
  nodeHooks: (x: Tensor) => {
    const y = x.mul(weight())
    y.gradFn!.registerPreHook!(() => note('hook before a node'))
    y.gradFn!.registerHook!(() => note('hook behind a node'))
    return y
  },
  leafHooks: (x: Tensor) => {
    weight().registerHook(() => note('hook of a leaf'))
    const handle = weight().registerPostAccumulateGradHook((leaf) => {
      note('hook behind the accumulation')
      // Written in place: what others read afterwards.
      currentContext()!.gradients().get(leaf)!.mul_(factor())
      handle.remove()
    })
    return x.mul(weight())
  },
}
type Part = keyof typeof parts

/** There and, over another call, at the third worker. */
const nested = async (part: Part, x: Tensor): Promise<Tensor> => parts[part](await call('worker2', there, [part, parts[part](x)]))
const there = (part: Part, x: Tensor): Tensor => parts[part](x)
const gradientsHere = (): string =>
  JSON.stringify([...currentContext()!.gradients()].map(([leaf, grad]) => [leaf.toArray(), grad.toArray()]))
/** Begins a pass with what it got. */
const passHere = async (part: Part, x: Tensor): Promise<void> => currentContext()!.backward([parts[part](x).sum()], { retainGraph: true })
const penaltyHere = (): Tensor => currentContext()!.gradients().get(weight())!.square().sum()
const failsInBackward = (x: Tensor): Tensor => {
  const y = x.mul(2)
  y.registerHook(() => {
    throw new RangeError('a hook that fails')
  })
  return y
}
const rootOfNegative = (x: Tensor): Tensor => x.sub(10).sqrt()
expose({
  ...{ 'inlined.nested': nested, 'inlined.there': there, 'inlined.gradients': gradientsHere, 'inlined.pass': passHere },
  ...{ 'inlined.penalty': penaltyHere, 'inlined.fails': failsInBackward, 'inlined.root': rootOfNegative },
})

/** The gradients of each worker, as it sees them. */
async function gradients(): Promise<string[]> {
  return [gradientsHere(), ...(await Promise.all(['worker1', 'worker2'].map((name) => call(name, gradientsHere, []))))]
}

/** Result and notes of the inlined program; those of some simulations are the same. */
async function same<T>(
  main: () => Promise<T>,
  check: (result: T, notes: readonly string[]) => void,
  { noted = (line: string) => line } = {},
): Promise<void> {
  const body = async (cluster: TestCluster) => {
    notes = []
    const result = await cluster.on('worker0').run(main)
    return { result, notes: notes.map(noted).sort() }
  }
  const oracle = await inlined({ workers: WORKERS, dataSeed: 7 }, body)
  check(oracle.result, oracle.notes)
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers: WORKERS, seed, dataSeed: 7 }, body)
    expectClean(simulation)
    expect({ seed, ...simulation.result }).toEqual({ seed, ...oracle })
  }
}

const inContext = <T>(fn: (ctx: DistAutogradContext) => Promise<T>) => distAutograd.context(fn)

test('TK-64 a checkpoint is computed again as the worker on which it was recorded: 2·x·w² by hand', () =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([3]).requiresGrad_()
        await ctx.backward([(await call('worker1', there, ['checkpointed', x])).sum()])
        return ctx.gradients().get(x)!.itemSync()
      }),
    (gradient) => expect(gradient).toBeCloseTo(2 * 3 * 2.2 * 2.2 * 1.4, 4),
  ))

/** Whether the part notes where it runs. */
const notesOf = (part: Part): boolean => part !== 'checkpointed' && part !== 'dropped'
const namesIn = (seen: readonly string[]) => [...new Set(seen.map((line) => / on (worker\d)/.exec(line)![1]))].sort()

test.each(Object.keys(parts) as Part[])('TK-64 %s: the worker, its random numbers and its gradients are those of the simulation', (part) =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([1.3]).requiresGrad_()
        await ctx.backward([parts[part](await call('worker1', nested, [part, x])).sum()])
        return [ctx.gradients().get(x)!.toArray(), await gradients()]
      }),
    (_, seen) => expect(namesIn(seen)).toEqual(notesOf(part) ? ['worker0', 'worker1', 'worker2'] : []),
  ),
)

test.each(Object.keys(parts) as Part[])('TK-64 %s: also in a pass through a pass that was recorded', (part) =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([1.3]).requiresGrad_()
        await ctx.backward([parts[part](await call('worker1', nested, [part, x])).sum()], { createGraph: true })
        const penalties = await Promise.all(['worker1', 'worker2'].map((name) => call(name, penaltyHere, [])))
        await ctx.backward([penalties[0]!.add(penalties[1]!).add(ctx.gradients().get(x)!.square().sum())], { retainGraph: true })
        return [ctx.gradients().get(x)!.toArray(), await gradients()]
      }),
    (_, seen) => expect(namesIn(seen)).toEqual(notesOf(part) ? ['worker0', 'worker1', 'worker2'] : []),
    // How far the other leaves of a worker are while a pass runs is a matter of time.
    { noted: (line) => line.replace(/, gradients .*/, '') },
  ),
)

test.each(Object.keys(parts) as Part[])('TK-64 %s: a pass that another worker begins is that worker’s', (part) =>
  same(
    () =>
      inContext(async () => {
        const x = tensor([1.3]).requiresGrad_()
        await call('worker1', passHere, [part, await call('worker2', there, [part, x])])
        return gradients()
      }),
    (_, seen) => expect(namesIn(seen)).toEqual(notesOf(part) ? ['worker1', 'worker2'] : []),
  ),
)

test('TK-64 a pass from a reference begins at its owner', () =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([1.3]).requiresGrad_()
        const loss = remote('worker1', there, ['tensorHook', x])
        await loss.backward(ctx.id)
        loss.dispose()
        return gradients()
      }),
    (_, seen) => expect(namesIn(seen)).toEqual(['worker1']),
  ))

class Held {
  forward(part: Part, x: Tensor): Tensor {
    return parts[part](x)
  }
}
async function* streamed(part: Part, x: Tensor): AsyncGenerator<Tensor> {
  yield parts[part](x)
  yield parts[part](x.mul(2))
}
expose({ 'inlined.Held': Held, 'inlined.streamed': streamed })

test.each(Object.keys(parts) as Part[])('TK-64 %s: through the method of a reference, and in the items of a stream', (part) =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([1.3]).requiresGrad_()
        const held = remote('worker1', Held, [])
        const y = (await held.call('forward', [part, x.mul(weight())])) as Tensor
        let sum = await held.rpcAsync().forward(part, y)
        for await (const item of stream('worker2', streamed, [part, sum])) sum = sum.add(item)
        await ctx.backward([parts[part](sum).sum()])
        held.dispose()
        return [ctx.gradients().get(x)!.toArray(), await gradients()]
      }),
    (_, seen) => expect(namesIn(seen)).toEqual(notesOf(part) ? ['worker0', 'worker1', 'worker2'] : []),
    // In which order two items of one worker run in backward is a matter of time, and so are their random numbers.
    { noted: (line) => line.replace(/, random [^,]*|, gradients .*/g, '') },
  ),
)

test('TK-64 gradients() has the leaves of the worker that asks', () =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([1.3]).requiresGrad_()
        await ctx.backward([(await call('worker1', nested, ['checkpointed', x])).sum()])
        return (await gradients()).map((text) => (JSON.parse(text) as unknown[]).length)
      }),
    (sizes) => expect(sizes).toEqual([1, 1, 1]),
  ))

const innermost = (error: unknown): unknown => {
  const { cause } = error as Error
  return cause === undefined ? error : innermost(cause)
}
/** Where backward failed, by its error. */
const placeOf = (error: unknown) => {
  const last = innermost(error)
  if (!isPostgradError(last)) return String(last)
  // The frames after the first are the callers'.
  const { frames: _, ...values } = last.values
  return { code: last.code, ...values }
}

test('TK-64 a hook that fails is said to have failed on its worker', () =>
  same(
    () =>
      inContext(async (ctx) => {
        const x = tensor([3]).requiresGrad_()
        return placeOf(await ctx.backward([(await call('worker1', failsInBackward, [x])).sum()]).catch((error: unknown) => error))
      }),
    (place) => expect(place).toMatchObject({ code: 'BACKWARD_FAILED', worker: 'worker1', workerId: 1, node: 'MulBackward' }),
  ))

test('TK-64 a local backward ends where a message would be, in a hook within a pass too; a pass ends where another context begins', () =>
  same(
    () =>
      inContext(async (ctx) => {
        const codes: unknown[] = []
        const code = (error: unknown) => codes.push((error as PostgradError).code)
        const x = tensor([3]).requiresGrad_()
        const y = await call('worker1', there, ['checkpointed', x])
        const [z, sum] = [y.mul(2), y.sum()]
        try {
          z.sum().backward(undefined, { retainGraph: true })
        } catch (error) {
          code(error)
        }
        z.registerHook((grad) => {
          sum.backward(undefined, { retainGraph: true })
          return grad
        })
        await ctx.backward([z.sum()]).catch(code)
        await distAutograd.context((other) => other.backward([y.mul(3).sum()])).catch(code)
        return codes
      }),
    (codes) => expect(codes).toEqual(['BACKWARD_CROSSES_WORKERS', 'BACKWARD_CROSSES_WORKERS', 'FOREIGN_CONTEXT']),
  ))

test('TK-64, DA-6 anomaly mode goes with a call: NaN is found on its worker, with the line of forward', () =>
  same(
    () =>
      withAnomalyDetection(() =>
        inContext(async (ctx) => {
          const x = tensor([3]).requiresGrad_()
          return placeOf(await ctx.backward([(await call('worker1', rootOfNegative, [x])).sum()]).catch((error: unknown) => error))
        }),
      ),
    (place) =>
      expect(place).toMatchObject({ code: 'BACKWARD_NAN', worker: 'worker1', forward: expect.stringContaining('inlined.sim.test') }),
  ))

test('TK-64 what a worker keeps in its slots is its own: a group of inlined workers gathers', async () => {
  const body = (cluster: TestCluster) =>
    Promise.all(
      ['worker0', 'worker1', 'worker2'].map((name) =>
        cluster.on(name).run(async () => [...(await meet(numberHere(), ['worker0', 'worker1', 'worker2']))]),
      ),
    )
  const oracle = await inlined({ workers: WORKERS }, body)
  expect(oracle[0]).toEqual([
    ['worker0', 1],
    ['worker1', 2],
    ['worker2', 3],
  ])
  expect((await simulate({ workers: WORKERS }, body)).result).toEqual(oracle)
})

test('TK-87 what is served finds the AsyncLocalStorage of where the program began and none of its caller, as in the simulation', async () => {
  const body = (cluster: TestCluster) =>
    cluster.on('worker0').run(() =>
      store.run('caller', async () => {
        const items: unknown[] = []
        for await (const item of stream('worker1', storeItems, [])) items.push(item)
        return [
          await call('worker0', storeHere),
          await call('worker1', storeHere),
          await remote('worker1', storeHere, []).toHere(),
          items,
          storeHere(),
        ]
      }),
    )
  const expected = [...Array(3).fill('test'), ['test', 'test'], 'caller']
  expect((await store.run('test', () => simulate({ workers: 2 }, body))).result).toEqual(expected)
  expect(await store.run('test', () => inlined({ workers: 2 }, body))).toEqual(expected)
})
