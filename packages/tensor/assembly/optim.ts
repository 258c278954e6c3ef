/**
 * Steps of optimizers over dense runs, in one pass over the parameter, its gradient and its states; for `wasm/optim.ts`. `nn/src/optim` has the formulas. Each
 * product, sum, quotient and root rounds as the operations of those formulas do, so the bits are theirs. A state that is not there is at 0.
 */

/** Which step the shared loop inlines: a compile-time constant, as in `elementwise.ts`. */
const enum Step { sgd_step, adam_step, rmsprop_step, adagrad_step }

/** 16 bytes from `p`, or (`whole` false) its one element in all lanes. */
@inline function get<T>(whole: bool, p: usize): v128 {
  return whole ? v128.load(p) : v128.load_splat<T>(p)
}

@inline function put<T>(whole: bool, p: usize, x: v128): void {
  if (whole) v128.store(p, x)
  else store<T>(p, v128.extract_lane<T>(x, 0))
}

/** x + a · y */
@inline function plus<T>(x: v128, a: T, y: v128): v128 {
  return v128.add<T>(x, v128.mul<T>(v128.splat<T>(a), y))
}

/** rate · average + gain · x */
@inline function decay<T>(average: v128, x: v128, rate: T, gain: T): v128 {
  return plus<T>(v128.mul<T>(average, v128.splat<T>(rate)), gain, x)
}

/** √x + eps */
@inline function rootPlus<T>(x: v128, eps: T): v128 {
  return v128.add<T>(v128.sqrt<T>(x), v128.splat<T>(eps))
}

/** The step from g by the velocity at i; the parameter adds it times the rate. So do the next three. */
@inline function sgd<T>(whole: bool, i: usize, g: v128, velocity: usize, momentum: T, gain: T, isFirst: bool, nesterov: bool): v128 {
  if (velocity == 0) return g
  const v = isFirst ? g : decay<T>(get<T>(whole, velocity + i), g, momentum, gain)
  put<T>(whole, velocity + i, v)
  return nesterov ? plus<T>(g, momentum, v) : v
}

@inline function adam<T>(
  whole: bool, i: usize, g: v128, average: usize, square: usize, largest: usize, beta1: T, gain1: T, beta2: T, gain2: T, eps: T,
): v128 {
  const m = decay<T>(get<T>(whole, average + i), g, beta1, gain1)
  put<T>(whole, average + i, m)
  let v = decay<T>(get<T>(whole, square + i), v128.mul<T>(g, g), beta2, gain2)
  put<T>(whole, square + i, v)
  if (largest != 0) {
    v = v128.max<T>(get<T>(whole, largest + i), v)
    put<T>(whole, largest + i, v)
  }
  return v128.div<T>(m, rootPlus<T>(v, eps))
}

@inline function rmsprop<T>(
  whole: bool, i: usize, g: v128, square: usize, average: usize, buffer: usize, alpha: T, gain: T, eps: T, momentum: T,
): v128 {
  let v = decay<T>(get<T>(whole, square + i), v128.mul<T>(g, g), alpha, gain)
  put<T>(whole, square + i, v)
  if (average != 0) {
    const m = decay<T>(get<T>(whole, average + i), g, alpha, gain)
    put<T>(whole, average + i, m)
    v = v128.sub<T>(v, v128.mul<T>(m, m))
  }
  const quotient = v128.div<T>(g, rootPlus<T>(v, eps))
  if (buffer == 0) return quotient
  const step = v128.add<T>(v128.mul<T>(get<T>(whole, buffer + i), v128.splat<T>(momentum)), quotient)
  put<T>(whole, buffer + i, step)
  return step
}

@inline function adagrad<T>(whole: bool, i: usize, g: v128, sum: usize, eps: T): v128 {
  const s = v128.add<T>(get<T>(whole, sum + i), v128.mul<T>(g, g))
  put<T>(whole, sum + i, s)
  return v128.div<T>(g, rootPlus<T>(s, eps))
}

/** One vector, or one element, at i: p ← factor · p, then p + rate · step of the direction ±g + weightDecay · p. Booleans say which numbers count. */
@inline function stepAt<T>(
  op: Step, whole: bool, i: usize, grad: usize, first: usize, second: usize, third: usize, p: usize,
  rate: T, scales: bool, factor: T, decays: bool, weightDecay: T, negates: bool, a: T, b: T, c: T, d: T, e: T, hasC: bool, hasD: bool,
): void {
  let x = get<T>(whole, p + i)
  if (scales) x = v128.mul<T>(x, v128.splat<T>(factor))
  let g = get<T>(whole, grad + i)
  if (negates) g = v128.neg<T>(g)
  // Without a decay nothing is added, since p may be infinite.
  if (decays) g = plus<T>(g, weightDecay, x)
  let step = g
  if (op == Step.sgd_step) step = sgd<T>(whole, i, g, first, a, b, hasC, hasD)
  else if (op == Step.adam_step) step = adam<T>(whole, i, g, first, second, third, a, b, c, d, e)
  else if (op == Step.rmsprop_step) step = rmsprop<T>(whole, i, g, first, second, third, a, b, c, d)
  else step = adagrad<T>(whole, i, g, first, a)
  put<T>(whole, p + i, plus<T>(x, rate, step))
}

/** @exports f32 f64 */
@inline function stepLoop<T>(
  op: Step, n: i32, grad: usize, first: usize, second: usize, third: usize, p: usize,
  rate: T, factor: T, weightDecay: T, maximize: T, a: T, b: T, c: T, d: T, e: T,
): void {
  const all = <usize>n * sizeof<T>()
  const whole = <usize>(n & ~(<i32>(16 / sizeof<T>()) - 1)) * sizeof<T>()
  // Comparisons of integers in the loop cost a third of those of floats.
  const scales = factor != 1
  const decays = weightDecay != 0
  const negates = maximize != 0
  const hasC = c != 0
  const hasD = d != 0
  let i: usize = 0
  for (; i < whole; i += 16) {
    stepAt<T>(op, true, i, grad, first, second, third, p, rate, scales, factor, decays, weightDecay, negates, a, b, c, d, e, hasC, hasD)
  }
  for (; i < all; i += sizeof<T>()) {
    stepAt<T>(op, false, i, grad, first, second, third, p, rate, scales, factor, decays, weightDecay, negates, a, b, c, d, e, hasC, hasD)
  }
}
