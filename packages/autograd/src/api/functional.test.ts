/** Derivatives of whole functions, against closed forms and each other. */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import * as F from '../index.js'

const vec = (...values: number[]) => tensor(Float64Array.from(values))
const code = (code: string) => expect.objectContaining({ code }) as unknown as Error
const close = (a: Tensor, b: Tensor) => {
  expect(a.shape).toEqual(b.shape)
  const [x, y] = [a.dataSync(), b.dataSync()]
  for (let i = 0; i < x.length; i++) expect(x[i]).toBeCloseTo(y[i]!, 12)
}

test('jacobian: output shape, then input shape; zeros where nothing depends', () => {
  const A = vec(1, 2, 3, 4, 5, 6).view([2, 3])
  const J = F.jacobian((x: Tensor) => A.matmul(x).pow(2), vec(1, -1, 2))
  close(
    J,
    A.mul(
      A.matmul(vec(1, -1, 2))
        .mul(2)
        .unsqueeze(1),
    ),
  )
  const [byX, byY] = F.jacobian((x: Tensor, _y: Tensor) => x.mul(3), [vec(1, 2), vec(5)])
  close(byX!, vec(3, 0, 0, 3).view([2, 2]))
  close(byY!, vec(0, 0).view([2, 1]))
  const [first, second] = F.jacobian((x: Tensor) => [x.sum(), x.mul(x)], vec(1, 2))
  close(first!, vec(1, 1))
  close(second!, vec(2, 0, 0, 4).view([2, 2]))
  expect(() => F.jacobian((x: Tensor, _y: Tensor) => x.mul(3), [vec(1), vec(5)], { strict: true })).toThrow(code('UNUSED_INPUT'))
})

describe('strict', () => {
  const [x, strict] = [vec(1, 2), { strict: true }]
  const unused = (message: string) =>
    expect.objectContaining({ code: 'UNUSED_INPUT', message: expect.stringContaining(message) }) as unknown as Error

  test('a result that does not require grad fails with UNUSED_INPUT, whose message names the call; without strict the derivatives are 0', () => {
    const fn = (_x: Tensor) => vec(3).sum()
    const calls: readonly (readonly [op: string, call: (options: F.FunctionalOptions) => unknown])[] = [
      ['vjp', (options) => F.vjp(fn, x, null, options)],
      ['jvp', (options) => F.jvp(fn, x, x, options)],
      ['jacobian', (options) => F.jacobian(fn, x, options)],
      ['hessian', (options) => F.hessian(fn, x, options)],
      ['hvp', (options) => F.hvp(fn, x, x, options)],
    ]
    for (const [op, call] of calls) {
      expect(() => call(strict)).toThrow(unused(`${op}: the result of the function does not require grad`))
      call({})
    }
    expect(() => F.jacobian((y: Tensor) => [y.sum(), vec(3)], x, strict)).toThrow(unused('jacobian: output 1 of the function does not'))
  })

  test('so is a gradient that does not require grad, for a second derivative', () => {
    const linear = (y: Tensor) => y.sum()
    expect(() => F.hessian(linear, x, strict)).toThrow(unused('hessian: the gradient of the function does not require grad'))
    expect(() => F.hvp(linear, x, x, strict)).toThrow(unused('hvp: the gradient of the function does not require grad'))
    const half = (a: Tensor, b: Tensor) => a.square().add(b).sum()
    expect(() => F.hessian(half, [x, x], strict)).toThrow(unused('hessian: the gradient for input 0 does not depend on input 1.'))
  })

  test('an input that the result does not depend on is named, with what to do', () => {
    const first = (y: Tensor, _z: Tensor) => y.mul(3)
    const message = 'vjp: the result of the function does not depend on input 1. Leave out strict to get zeros.'
    expect(() => F.vjp(first, [x, x], x, strict)).toThrow(unused(message))
  })
})

test('vjp and jvp are the products with the jacobian; inputs are left alone', () => {
  const fn = (x: Tensor, y: Tensor) => [x.mul(y).sin(), x.exp().sum()]
  const xs = [vec(0.1, 0.2, 0.3).requiresGrad_(), vec(1, 2, 3)] as const
  const J = F.jacobian(fn, xs)
  const [u, s, v, w] = [vec(1, -1, 0.5), vec(2).reshape([]), vec(0.3, 0, -1), vec(1, 1, 2)]
  const [outputs, grads] = F.vjp(fn, xs, [u, s])
  close(outputs[0]!, fn(...xs)[0]!.detach())
  for (const i of [0, 1]) close(grads[i]!, u.matmul(J[0]![i]!).add(J[1]![i]!.mul(s)))
  const [, along] = F.jvp(fn, xs, [v, w])
  for (const o of [0, 1]) close(along[o]!, J[o]![0]!.matmul(v).add(J[o]![1]!.matmul(w)))
  expect([xs[0].grad, outputs[0]!.requiresGrad, grads[0]!.requiresGrad, along[0]!.requiresGrad]).toEqual([null, false, false, false])
})

test('hessian, and hvp without it', () => {
  const fn = (x: Tensor) =>
    x
      .mul(x)
      .mul(x)
      .sum()
      .add(x.select(0, 0).mul(x.select(0, 1)))
  const H = F.hessian(fn, vec(1, 2, 3))
  close(H, vec(6, 1, 0, 1, 12, 0, 0, 0, 18).view([3, 3]))
  const [value, product] = F.hvp(fn, vec(1, 2, 3), vec(1, -1, 2))
  expect(value.itemSync()).toBe(38)
  close(product, H.matmul(vec(1, -1, 2)))
  const blocks = F.hessian((a: Tensor, b: Tensor) => a.mul(b).sum(), [vec(1, 2), vec(3, 4)])
  close(blocks[0]![1]!, vec(1, 0, 0, 1).view([2, 2]))
  close(blocks[0]![0]!, vec(0, 0, 0, 0).view([2, 2]))
  expect(() => F.hessian((x: Tensor) => x.mul(2), vec(1, 2))).toThrow(code('NOT_A_SCALAR'))
})

test('createGraph: a derivative of the derivative, back to what the input was computed from', () => {
  const x = vec(2, 3).requiresGrad_()
  const J = F.jacobian((a: Tensor) => a.pow(3), x.mul(1), { createGraph: true })
  J.sum().backward()
  expect([...x.grad!.dataSync()]).toEqual([12, 18])
})

test('also under noGrad; VECTOR_MISMATCH', () => {
  const fn = (x: Tensor) => x.mul(2)
  close(
    F.noGrad(() => F.jacobian(fn, vec(1))),
    vec(2).view([1, 1]),
  )
  for (const v of [undefined, vec(1), [vec(1, 2), vec(1, 2)]]) {
    expect(() => F.vjp(fn, vec(1, 2), v)).toThrow(code('VECTOR_MISMATCH'))
    expect(() => F.jvp(fn, vec(1, 2), v)).toThrow(code('VECTOR_MISMATCH'))
  }
})
