/** Trace events of operations, kernels and backward nodes. */
import { describe, expect, test } from '@jest/globals'
import { type TraceEvent, trace, tracerOf } from '@postgrad/base/internal'
import { tensor, withDevice } from '@postgrad/tensor'
import { gpujsDevice } from '@postgrad/tensor/suite'
import { add, defineFunction, defineKernel, mul, silu } from '../index.js'

/** Events of `fn` outside of workers. */
function traced(fn: () => void): TraceEvent[] {
  const events: TraceEvent[] = []
  let ms = 0
  const options = {
    now: () => ms++,
    onBug: (error: unknown) => {
      throw error
    },
  }
  const stop = trace(null, options, (event) => events.push(event))
  try {
    fn()
  } finally {
    stop()
  }
  expect(tracerOf(null)).toBeNull()
  return events
}

/** `kind name`, two blanks further in for each span around it. @throws where spans do not nest */
function nested(events: readonly TraceEvent[]): string[] {
  const open: number[] = []
  const lines: string[] = []
  for (const { phase, kind, name, span } of events) {
    if (phase === 'end') expect(open.pop()).toBe(span)
    else lines.push(`${'  '.repeat(open.length)}${kind} ${name}`)
    if (phase === 'begin') open.push(span)
  }
  expect(open).toEqual([])
  return lines
}

describe('the tracer', () => {
  test('TRC-1: an operation has its kernels in it, and a node of backward the operations of its formula', () => {
    const x = tensor([1, 2, 3]).requiresGrad_()
    const events = traced(() => mul(silu(x), 2).sum().backward())
    expect(nested(events)).toEqual([
      'operation silu',
      '  kernel silu',
      'operation mul',
      '  kernel mul',
      'operation sum',
      '  kernel sum',
      'node GraphRoot',
      'node SumBackward',
      'node MulBackward',
      '  kernel mul',
      'node SiluBackward',
      '  kernel siluBackward',
      'node AccumulateGrad',
    ])
    expect(x.grad!.toArray()).toHaveLength(3)
  })

  test('TRC-1: a kernel names its device, dtype, form and code', () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    const kernels = (events: readonly TraceEvent[]) =>
      events.filter(({ phase, kind }) => phase === 'begin' && kind === 'kernel').map(({ name, values }) => ({ name, ...values }))
    expect(kernels(traced(() => add(x, x)))).toEqual([{ name: 'add', device: 'cpu', dtype: 'float32', variant: 'loop' }])
    expect(kernels(traced(() => add(x.transpose(0, 1), tensor([1, 2]))))).toEqual([
      { name: 'add', device: 'cpu', dtype: 'float32', variant: null },
    ])
    expect(kernels(traced(() => withDevice('js', () => x.softmax(1))))).toEqual([
      { name: 'softmax', device: 'js', dtype: 'float32', variant: 'loop' },
    ])
  })

  test("TRC-1: users' own kernels are traced, too", () => {
    const triple = defineKernel({ name: 'triple', inputs: ['x'], kernel: 'function (x) { return x[this.thread.x] * 3; }' })
    let result: unknown
    const events = traced(() => {
      result = triple(tensor([1, 2])).toArray()
    })
    expect(result).toEqual([3, 6])
    expect(nested(events)).toContain('kernel triple')
  })

  test('TRC-2: spans end where an operation, a kernel or a node throws, and results are the same bits as without a reader', () => {
    const x = tensor([1, 2]).requiresGrad_()
    const fails = defineFunction({
      name: 'fails',
      forward: (_ctx, value: typeof x) => value.mul(1),
      backward: () => {
        throw new RangeError('on purpose')
      },
    })
    const events = traced(() => {
      expect(() => add(x, tensor([1, 2, 3]))).toThrow('expected shapes that broadcast')
      expect(() => fails(x).sum().backward()).toThrow('on purpose')
      const whole = tensor([1, 2], { dtype: 'int32' })
      expect(() => withDevice(gpujsDevice(), () => mul(whole, whole))).toThrow('has no kernel for int32')
    })
    expect(nested(events)[0]).toBe('operation add')
    expect(nested(events).slice(-2)).toEqual(['operation mul', '  kernel mul'])
    expect(nested(events)).toContain('node failsBackward')
    const pass = () => {
      const y = tensor([0.1, -0.7, 3]).requiresGrad_()
      silu(y).exp().sum().backward()
      return y.grad!.toArray()
    }
    const without = pass()
    let withReader: unknown
    traced(() => {
      withReader = pass()
    })
    expect(withReader).toEqual(without)
  })
})
