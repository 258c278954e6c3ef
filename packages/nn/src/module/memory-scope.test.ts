/** `memoryScope` around training keeps the tensors that are needed, and frees the others. */
import { expect, test } from '@jest/globals'
import { checkpoint, defineFunction } from '@postgrad/autograd'
import { memoryScope, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { threadHeap, withHeapLimit } from '@postgrad/tensor/internal'
import { Adam, Linear } from '../index.js'

const CLOSED = expect.objectContaining({ code: 'TENSOR_CLOSED' })

test('what is returned, wherever it is in it, stays; the rest is closed, in nested scopes too', () => {
  const made: Tensor[] = []
  const make = () => {
    const x = zeros([2])
    made.push(x)
    return x
  }
  const results = memoryScope(() => {
    const inner = memoryScope(() => {
      make()
      return [make(), make()]
    })
    make()
    return { list: [inner[0]], map: new Map([['a', make()]]), set: new Set([make()]), deep: { view: make().view([2, 1]) }, n: 3 }
  })
  expect(made.map((x) => x.isClosed)).toEqual([true, false, true, true, false, false, false])
  expect(results.deep.view.dataSync()).toEqual(new Float32Array(2))
  expect(() => made[0]!.dataSync()).toThrow(CLOSED)
})

test('what fails leaves nothing open; a promise is refused, and its tensors stay', () => {
  let x: Tensor | undefined
  const failing = () => {
    x = zeros([2])
    throw new Error('as asked')
  }
  expect(() => memoryScope(failing)).toThrow('as asked')
  expect(x?.isClosed).toBe(true)
  const promising = async () => {
    x = zeros([2])
  }
  expect(() => memoryScope(promising)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(x?.isClosed).toBe(false)
})

test('a graph that leaves the scope can run backward, and .grad outlives it', () => {
  const w = tensor([1, 2, 3], { requiresGrad: true })
  const loss = memoryScope(() => w.mul(w).exp().sum())
  memoryScope(() => loss.backward())
  expect(w.grad!.dataSync().every(Number.isFinite)).toBe(true)
})

test('what a graph saved is closed at the end of the first scope after its backward pass', () => {
  const w = tensor([1, 2, 3], { requiresGrad: true })
  let [saved, other]: Tensor[] = []
  memoryScope(() => {
    const loss = memoryScope(() => {
      saved = w.exp()
      return saved.mul(saved).sum()
    })
    expect(saved!.isClosed).toBe(false)
    loss.backward(undefined, { retainGraph: true })
    memoryScope(() => {
      other = saved!.sin()
      other
        .mul(other)
        .sum()
        .backward(undefined, { inputs: [w], retainGraph: true })
    })
    expect([saved!.isClosed, other.isClosed]).toEqual([false, false])
    loss.backward()
    // The other graph needs it still.
    expect(saved!.isClosed).toBe(false)
  })
  expect([saved!.isClosed, other!.isClosed]).toEqual([false, false])
  memoryScope(() => {
    const y = w.exp()
    saved = y
    y.mul(y).sum().backward()
  })
  expect([saved!.isClosed, w.isClosed, w.grad!.isClosed]).toEqual([true, false, false])
})

test('what the second run of a checkpoint saved is closed, too', () => {
  const w = tensor([1, 2, 3], { requiresGrad: true })
  const made: Tensor[] = []
  const square = defineFunction({
    name: 'Square',
    forward: (ctx, x: Tensor) => {
      ctx.saveForBackward(x)
      return x.mul(x)
    },
    backward: (ctx, grad: Tensor) => grad.mul(ctx.savedTensors[0]!).mul(2),
  })
  const part = (x: Tensor) => {
    const y = x.exp()
    made.push(y, square(y))
    return made.at(-1)!.sin()
  }
  memoryScope(() => checkpoint(part, checkpoint(part, w)).sum().backward())
  memoryScope(() =>
    checkpoint((x: Tensor) => checkpoint(part, part(x)), w)
      .sum()
      .backward(),
  )
  expect([made.length >= 16, made.filter((each) => !each.isClosed).length]).toEqual([true, 0])
  const values = [...w.grad!.dataSync()]
  w.grad = null
  for (let pass = 1; pass <= 2; pass++) part(part(w)).sum().backward()
  expect(values).toEqual([...w.grad!.dataSync()])
})

test('a training loop in scopes, without a turn of the event loop, takes less memory, for the same bits; without them no temporary stays', () => {
  const train = (scope: <T>(fn: () => T) => T) => {
    const model = new Linear(300, 200)
    for (const [i, p] of [...model.parameters()].entries()) p.detach().fill_(0.01 * (i + 1))
    const optimizer = new Adam(model.parameters(), { lr: 0.01 })
    const held: number[] = []
    for (let step = 0; step < 30; step++) {
      scope(() => {
        const x = zeros([50, 300]).add(step / 30)
        optimizer.zeroGrad()
        model.forward(x).sub(1).pow(2).mean().backward()
        optimizer.step()
      })
      held.push(threadHeap().heldBytes)
    }
    return { weights: [...model.parameters()].map((p) => [...p.detach().dataSync()]), held }
  }
  const plenty = Number.POSITIVE_INFINITY
  const scoped = withHeapLimit(plenty, () => train(memoryScope))
  const free = withHeapLimit(plenty, () => train((fn) => fn()))
  expect(scoped.weights).toEqual(free.weights)
  // With scopes nothing is left for the collector: each step takes the blocks of the one before.
  const perStep = ({ held }: { held: number[] }) => (held.at(-1)! - held[1]!) / (held.length - 2)
  expect(perStep(scoped)).toBe(0)
  expect(perStep(free)).toBeGreaterThan(0)
  // Without scopes activations wait. The gradients in between and the temporaries of Adam would be a megabyte.
  const weight = 300 * 200 * 4
  expect(perStep(free)).toBeLessThan(3 * weight)
})
