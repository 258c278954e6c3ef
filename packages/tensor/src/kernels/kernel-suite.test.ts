/** Tests the kernel suite: each kind of fault that it should find, planted into a correct kernel. */
import { expect, test } from '@jest/globals'
import type { DType } from '../values/dtype.js'
import { jsKernels } from './js/backend.js'
import { checkKernel, type KernelSuiteOptions } from './kernel.suite.js'
import type { Binary, Matmul, Rows, Unary } from './table/operands.js'
import type { KernelOp } from './table/table.js'

type A = Float32Array
const options: KernelSuiteOptions = { seed: 1, exact: () => false, elementsMax: 400 }
const right = <K>(op: KernelOp, dtype: DType = 'float32') => jsKernels[op][dtype] as unknown as K
const add = right<Binary>('add')
const neg = right<Unary>('neg')

/** `kernel` followed by `fault`, where the output is dense. */
function faulty(kernel: Binary, fault: (n: number, out: A, outOffset: number) => void): Binary {
  return (a, b, out) => {
    kernel(a, b, out)
    if (out.isContiguous) fault(out.numel, out.storage.host as A, out.offset)
  }
}

test('a right kernel passes', () => {
  const { checked, missing } = checkKernel('add', 'float32', add, options)
  expect(checked).toBeGreaterThan(50)
  expect(missing).toEqual([])
})

test('what a kernel was not tried with is told: a suite of one shape', () => {
  const { missing } = checkKernel('add', 'float32', add, { ...options, shapes: [[130]] })
  expect(missing).toEqual(['dense empty', 'dense 0-d', 'strided empty', 'strided row repeated'])
  const without = { ...options, leaveOut: { add: { values: [Number.NaN, -0], reason: 'a test' } } }
  expect(checkKernel('add', 'float32', add, without).missing).toEqual(['dense NaN', 'dense -0', 'strided NaN', 'strided -0'])
})

const FAULTS: Readonly<Record<string, (n: number, out: A, oo: number) => void>> = {
  'one value slightly off'(n, out, oo) {
    if (n > 4) out[oo + 4]! += 1e-3
  },
  'a write behind the end'(n, out, oo) {
    out[oo + n] = 0
  },
  'a write before the beginning'(_, out, oo) {
    out[oo - 1] = 0
  },
  'the last element forgotten'(n, out, oo) {
    if (n > 0) out[oo + n - 1] = 77
  },
  'infinities lost'(n, out, oo) {
    for (let i = oo; i < oo + n; i++) out[i] = Math.max(-3e38, Math.min(out[i]!, 3e38))
  },
  'NaN lost'(n, out, oo) {
    for (let i = oo; i < oo + n; i++) if (Number.isNaN(out[i]!)) out[i] = 0
  },
}

test.each(Object.keys(FAULTS))('found: %s', (name) => {
  expect(() => checkKernel('add', 'float32', faulty(add, FAULTS[name]!), options)).toThrow('add float32')
})

const STRIDED_FAULTS: Readonly<Record<string, Binary>> = {
  'NaN lost'(a, b, out) {
    add(a, b, out)
    const host = out.storage.host!
    if (!out.isContiguous) for (let i = 0; i < host.length; i++) if (Number.isNaN(host[i]!)) host[i] = 0
  },
  'a row of which only the first element is repeated'(a, b, out) {
    const isRow = b.isContiguous && b.numel > 1 && b.numel < out.numel
    add(a, isRow ? { ...b, strides: b.strides.map(() => 0) } : b, out)
  },
  'nothing added in place'(a, b, out) {
    if (a.storage.host !== out.storage.host || out.isContiguous) add(a, b, out)
  },
}

test.each(Object.keys(STRIDED_FAULTS))('found where operands are strided: %s', (name) => {
  expect(() => checkKernel('add', 'float32', STRIDED_FAULTS[name]!, options)).toThrow('add float32')
})

test('found: a stride ignored', () => {
  const kernel: Binary = (a, b, out) => add(a, { ...b, strides: b.numel === a.numel ? a.strides : b.strides }, out)
  expect(() => checkKernel('add', 'float32', kernel, options)).toThrow('add float32')
})

test('found: -0 lost', () => {
  const kernel: Unary = (x, out, p0, p1) => {
    neg(x, out, p0, p1)
    const host = out.storage.host!
    for (let i = out.offset; i < out.offset + out.numel; i++) host[i] = host[i]! + 0
  }
  expect(() => checkKernel('neg', 'float32', kernel, options)).toThrow(/-0/)
})

test('found: the last bit, where it must agree', () => {
  const kernel = faulty(add, (n, out, oo) => {
    if (n > 4) out[oo + 4]! *= 1 + 2 ** -22
  })
  expect(() => checkKernel('add', 'float32', kernel, { ...options, exact: () => true })).toThrow('add float32')
})

test('found: a reduction that skips its last term, a product that repeats one batch', () => {
  const sum = right<Rows>('sum')
  const short: Rows = (x, out, outer, k, inner) => sum(x, out, outer, inner === 1 && outer === 1 ? k - 1 : k, inner)
  expect(() => checkKernel('sum', 'float32', short, options)).toThrow('sum float32')
  const matmul = right<Matmul>('matmul')
  const stuck: Matmul = (a, b, out) => matmul({ ...a, strides: a.strides.with(0, 0) }, b, out)
  expect(() => checkKernel('matmul', 'float32', stuck, options)).toThrow('matmul float32')
})
