/**
 * The gpu.js kernels, each once, as the text of a function. Text, because gpu.js compiles the text of functions: whatever rewrites
 * functions on the way (coverage, bundlers) would break them. Below: gpu.js; above: `kernels.ts`, which calls them.
 *
 * Rules: arguments are flat arrays and numbers; sizes and strides are integer constants, which also bound every loop (a bound that is an
 * argument stops at 1000 silently); one number is returned per thread. Indices pass through float32, so they are exact below 2^24.
 */
import type { BinaryOp, CompareOp, UnaryOp } from '../table.js'

/** Element-wise functions of `v`, with parameters `p0` and `p1`. */
export const UNARY_BODY: Readonly<Record<UnaryOp, string>> = {
  neg: 'return -v;',
  exp: 'return Math.exp(v);',
  log: 'return Math.log(v);',
  sqrt: 'return Math.sqrt(v);',
  sin: 'return Math.sin(v);',
  cos: 'return Math.cos(v);',
  tanh: 'return Math.tanh(v);',
  sigmoid: 'return 1 / (1 + Math.exp(-v));',
  relu: 'return Math.max(v, 0);',
  abs: 'return Math.abs(v);',
  sign: 'let s = 0; if (v > 0) { s = 1; } if (v < 0) { s = -1; } return s;',
  // As PyTorch: a power of ±0.5 is the square root; 1 to any power, NaN as well, is 1 (in JavaScript it is not).
  pow: 'if (p0 == 0.5) { return Math.sqrt(v); } if (p0 == -0.5) { return 1 / Math.sqrt(v); } if (v == 1) { return 1; } return Math.pow(v, p0);',
  clamp: 'return Math.min(Math.max(v, p0), p1);',
}

export const BINARY_BODY: Readonly<Record<BinaryOp | CompareOp, string>> = {
  add: 'return va + vb;',
  sub: 'return va - vb;',
  mul: 'return va * vb;',
  div: 'return va / vb;',
  maximum: 'return Math.max(va, vb);',
  minimum: 'return Math.min(va, vb);',
  eq: 'let t = 0; if (va == vb) { t = 1; } return t;',
  ne: 'let t = 0; if (va != vb) { t = 1; } return t;',
  lt: 'let t = 0; if (va < vb) { t = 1; } return t;',
  le: 'let t = 0; if (va <= vb) { t = 1; } return t;',
  gt: 'let t = 0; if (va > vb) { t = 1; } return t;',
  ge: 'let t = 0; if (va >= vb) { t = 1; } return t;',
}

export function unarySource(op: UnaryOp): string {
  return `function (x, p0, p1) {
    const v = x[this.thread.x];
    ${UNARY_BODY[op]}
  }`
}

/** Constants: aStep, bStep, 0 or 1. */
export function binarySource(op: BinaryOp | CompareOp): string {
  return `function (a, b) {
    const va = a[this.thread.x * this.constants.aStep];
    const vb = b[this.thread.x * this.constants.bStep];
    ${BINARY_BODY[op]}
  }`
}

/** Constants: cStep, aStep, bStep. */
export const WHERE = `function (c, a, b) {
  let v = b[this.thread.x * this.constants.bStep];
  if (c[this.thread.x * this.constants.cStep] != 0) { v = a[this.thread.x * this.constants.aStep]; }
  return v;
}`

/** Constants: xStep. */
export const AXPY = `function (out, x, alpha) {
  return out[this.thread.x] + alpha * x[this.thread.x * this.constants.xStep];
}`

/** Where fibre `this.thread.x` of [outer, k, inner] begins; its elements are `inner` apart. */
const FIBRE =
  'const row = Math.floor(this.thread.x / this.constants.inner); const from = row * (this.constants.k - 1) * this.constants.inner + this.thread.x;'

/** Constants of the reductions: k, inner. */
export const REDUCTION = {
  sum: `function (x) {
    ${FIBRE}
    let total = 0;
    for (let j = 0; j < this.constants.k; j++) { total += x[from + j * this.constants.inner]; }
    return total;
  }`,
  amax: `function (x) {
    ${FIBRE}
    let best = x[from];
    for (let j = 1; j < this.constants.k; j++) { best = Math.max(best, x[from + j * this.constants.inner]); }
    return best;
  }`,
  // A NaN that is held stays; else a greater one or the first NaN takes its place.
  argmax: `function (x) {
    ${FIBRE}
    let best = x[from];
    let at = 0;
    for (let j = 1; j < this.constants.k; j++) {
      const v = x[from + j * this.constants.inner];
      if (best == best && (v > best || v != v)) { best = v; at = j; }
    }
    return at;
  }`,
} as const

/** The fibre to which element `this.thread.x` of [outer, k, inner] belongs. */
const FIBRE_OF =
  'const fibre = Math.floor(this.thread.x / (this.constants.k * this.constants.inner)) * this.constants.inner + this.thread.x - Math.floor(this.thread.x / this.constants.inner) * this.constants.inner;'

/** The steps of a softmax after the maxima: exponentials, (their sums: REDUCTION.sum), results. Constants: k, inner. */
export const SOFTMAX = {
  exponentials: `function (x, maxima) {
    ${FIBRE_OF}
    return Math.exp(x[this.thread.x] - maxima[fibre]);
  }`,
  softmax: `function (exponentials, sums) {
    ${FIBRE_OF}
    return exponentials[this.thread.x] / sums[fibre];
  }`,
  logSoftmax: `function (x, maxima, sums) {
    ${FIBRE_OF}
    return x[this.thread.x] - maxima[fibre] - Math.log(sums[fibre]);
  }`,
} as const

/** Output [m, n]; constants: k and the strides. */
export const MATMUL = `function (a, b) {
  let total = 0;
  for (let p = 0; p < this.constants.k; p++) {
    total += a[this.thread.y * this.constants.aRow + p * this.constants.aCol] * b[p * this.constants.bRow + this.thread.x * this.constants.bCol];
  }
  return total;
}`

/** Constants: classes. Targets come as float32. */
export const NLL = `function (x, target) {
  return -x[this.thread.x * this.constants.classes + target[this.thread.x]];
}`

/** Constants: classes, gradStep. */
export const NLL_BACKWARD = `function (grad, target) {
  const row = Math.floor(this.thread.x / this.constants.classes);
  const column = this.thread.x - row * this.constants.classes;
  let v = 0;
  if (target[row] == column) { v = -grad[row * this.constants.gradStep]; }
  return v;
}`

/** Each element of the weight's gradient looks through all indices: no two threads write to one place. Constants: n, d. */
export const EMBEDDING_BACKWARD = `function (held, grad, indices) {
  const row = Math.floor(this.thread.x / this.constants.d);
  const column = this.thread.x - row * this.constants.d;
  let total = held[this.thread.x];
  for (let i = 0; i < this.constants.n; i++) {
    if (indices[i] == row) { total += grad[i * this.constants.d + column]; }
  }
  return total;
}`
