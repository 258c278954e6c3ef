/** Anomaly mode: only with it, an error of backward names the line of forward. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import * as F from '../index.js'

const leaf = (...values: number[]) => tensor(values, { requiresGrad: true })

function refusal(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected it to throw')
}

/** The line that calls this, as `file:line`. */
function here(): string {
  const frames = (new Error('here').stack ?? '').split('\n')
  return /([^/\s(]+:\d+):\d+\)?$/.exec(frames[2]!)![1]!
}

const failing = F.defineFunction({
  name: 'Failing',
  forward: (_, x: Tensor) => x.mul(1),
  backward: () => {
    throw new RangeError('Simulate error on backward pass')
  },
})

describe('a gradient with NaN', () => {
  test('on a device with a memory of its own the next read reports it, once', async () => {
    const there = residentDevice()
    const x = leaf(0, 1).detach().to(there).requiresGrad_()
    const mask = tensor([0, 1], { device: there })
    F.withAnomalyDetection(() => x.sqrt().mul(mask).sum().backward())
    await expect(x.grad!.data()).rejects.toMatchObject({ code: 'BACKWARD_NAN', op: 'SqrtBackward', values: { index: 0 } })
    expect([...(await x.grad!.data())]).toEqual([Number.NaN, 0.5])
  })

  test('the error names the node and the line of forward', () => {
    F.withAnomalyDetection(() => {
      const x = leaf(0, 1)
      const [y, line] = [x.sqrt(), here()]
      const error = refusal(() =>
        y
          .mul(tensor([0, 1]))
          .sum()
          .backward(),
      )
      expect(error).toMatchObject({ code: 'BACKWARD_NAN', op: 'SqrtBackward', values: { node: 'SqrtBackward', index: 0 } })
      expect(error.message).toContain(line)
      expect(error.values.forward).toContain(line)
      for (const frame of error.values.frames as string[]) expect(frame).not.toMatch(/record\.|variable\.|tensor\.[jt]s|node:internal/)
    })
  })

  test('also where backward runs outside, and after an await inside', async () => {
    const y = await F.withAnomalyDetection(async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return leaf(0).sqrt().mul(0)
    })
    expect(refusal(() => y.backward())).toMatchObject({ code: 'BACKWARD_NAN', op: 'SqrtBackward' })
  })

  test('of a node that was made outside: that it was', () => {
    const y = leaf(0).sqrt().mul(0)
    expect(refusal(() => F.withAnomalyDetection(() => y.backward())).message).toContain('outside of withAnomalyDetection')
  })

  test('of a backward that was recorded: both lines', () => {
    F.withAnomalyDetection(() => {
      const x = leaf(0)
      const [y, line] = [x.pow(1.5), here()]
      const [g] = F.grad(y, [x], { createGraph: true })
      const error = refusal(() => F.grad(g!.mul(0), [x]))
      expect(error).toMatchObject({ code: 'BACKWARD_NAN', op: 'PowBackward' })
      expect(error.message).toContain('in the backward of PowBackward')
      expect(error.message).toContain(line)
    })
  })

  test('is left alone without checkNaN, and without the mode', () => {
    const run = () => leaf(0).sqrt().mul(0).backward()
    F.withAnomalyDetection(run, { checkNaN: false })
    run()
  })
})

describe('a backward that throws', () => {
  test('throws what it threw; the line of forward stands behind the last cause', () => {
    F.withAnomalyDetection(() => {
      const [y, line] = [failing(leaf(1)), here()]
      const error = refusal(() => y.backward())
      expect(error).toBeInstanceOf(RangeError)
      expect(error.cause).toMatchObject({ code: 'BACKWARD_FAILED', op: 'FailingBackward', values: { node: 'FailingBackward' } })
      expect((error.cause as PostgradError).message).toContain(line)
    })
    expect(refusal(() => failing(leaf(1)).backward()).cause).toBeUndefined()
  })

  test('what is no error becomes the cause of one', () => {
    const odd = F.defineFunction({
      name: 'Odd',
      forward: (_, x: Tensor) => x.mul(1),
      backward: () => {
        throw 'odd'
      },
    })
    const error = F.withAnomalyDetection(() => refusal(() => odd(leaf(1)).backward()))
    expect(error).toMatchObject({ code: 'BACKWARD_FAILED', op: 'OddBackward', cause: 'odd' })
  })

  test.each(['frozen', 'a ring of causes', 'a cause that is a text'])(
    'an error that nothing can be added to becomes the cause of one, which has the line of forward: %s',
    (which) => {
      const thrown = new RangeError(which, which === 'a cause that is a text' ? { cause: 'odd' } : undefined)
      if (which === 'frozen') Object.freeze(thrown)
      if (which === 'a ring of causes') thrown.cause = new RangeError('its cause', { cause: thrown })
      const throws = F.defineFunction({
        name: 'Throws',
        forward: (_, x: Tensor) => x.mul(1),
        backward: () => {
          throw thrown
        },
      })
      F.withAnomalyDetection(() => {
        const [y, line] = [throws(leaf(1)), here()]
        const error = refusal(() => y.backward())
        expect(error).toMatchObject({ code: 'BACKWARD_FAILED', op: 'ThrowsBackward', values: { node: 'ThrowsBackward' } })
        expect(error.cause).toBe(thrown)
        expect(error.message).toContain(line)
      })
    },
  )

  test('a saved variable that was written to: which operation wrote, and where', () => {
    F.withAnomalyDetection(() => {
      const h = leaf(1, 2).mul(1)
      const [y, line] = [h.mul(h), here()]
      const [, wrote] = [h.detach().sub_(ones([2])), here()]
      const error = refusal(() => y.sum().backward())
      expect(error).toMatchObject({ code: 'SAVED_VARIABLE_MODIFIED', op: 'MulBackward', values: { writer: 'sub_' } })
      expect(error.message).toContain('sub_ has written to it at ')
      expect(error.message).toContain(wrote)
      expect((error.cause as PostgradError).message).toContain(line)
    })
  })
})

test('outside of the mode nothing is noted, not even beside it', async () => {
  const inside = F.withAnomalyDetection(() => new Promise((resolve) => setTimeout(resolve, 5)))
  const y = leaf(0).sqrt().mul(0)
  y.backward()
  await inside
  const error = refusal(() => failing(leaf(1)).backward())
  expect([error instanceof PostgradError, error.cause]).toEqual([false, undefined])
})
