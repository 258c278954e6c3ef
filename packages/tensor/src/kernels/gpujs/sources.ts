/**
 * The gpu.js kernels, each once, as the text of a function. Text, because gpu.js compiles the text of functions: whatever rewrites
 * functions on the way (coverage, bundlers) would break them. Below: gpu.js; above: `kernels.ts`, which calls them.
 *
 * Rules: arguments are flat arrays and numbers; sizes and strides are integer constants, which also bound every loop (a bound that is an
 * argument stops at 1000 silently); one number is returned per thread. Indices pass through float32, so they are exact below 2^24.
 */
import type { BinaryOp, CompareOp, GradOp, UnaryOp } from '../table/table.js'

/**
 * Of a ≥ 0: `series`, which is erf a / a where a < 1, and `tail`, which is erfc a elsewhere. Polynomials of Cephes (Moshier, `ndtrf.c`), error
 * 2e-7. a² is split into a part that is exact in float32 and the rest, since its rounding error would be multiplied in the exponential.
 */
const ERFC = `const s = a * a;
    const series = ((((((7.853861353153693e-5 * s - 8.010193625184903e-4) * s + 5.188327685732524e-3) * s - 2.685381193529856e-2) * s + 1.128358514861418e-1) * s - 3.761262582423300e-1) * s + 1.128379165726710);
    let tail = 0;
    if (a != a) { tail = a; }
    if (a >= 1 && a < 10.5) {
      const h = Math.floor(a * 256) / 256;
      const q = 1 / a;
      const y = q * q;
      let p = ((((((((2.326819970068386e-2 * y - 1.387039388740657e-1) * y + 3.687424674597105e-1) * y - 5.824733027278666e-1) * y + 6.210004621745983e-1) * y - 4.944515323274145e-1) * y + 3.404879937665872e-1) * y - 2.741127028184656e-1) * y + 5.638259427386472e-1);
      if (a >= 2) {
        p = (((((((-10.47766399936249 * y + 12.97719955372516) * y - 7.495518717768503) * y + 2.921019019210786) * y - 1.015265279202700) * y + 4.218463358204948e-1) * y - 2.820767439740514e-1) * y + 5.641895067754075e-1);
      }
      tail = Math.exp(-h * h) * Math.exp((h - a) * (h + a)) * q * p;
    }`

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
  floor: 'return Math.floor(v);',
  ceil: 'return Math.ceil(v);',
  // Of the absolute value, and v itself where it is a zero, which keeps the sign of a zero.
  round: `if (v == 0) { return v; }
    const a = Math.abs(v);
    const f = Math.floor(a);
    let r = f;
    if (a - f > 0.5) { r = f + 1; }
    if (a - f == 0.5 && f - 2 * Math.floor(f / 2) != 0) { r = f + 1; }
    if (v < 0) { return -r; }
    return r;`,
  trunc: 'return Math.trunc(v);',
  reciprocal: 'return 1 / v;',
  rsqrt: 'return 1 / Math.sqrt(v);',
  log1p: 'return Math.log1p(v);',
  expm1: 'return Math.expm1(v);',
  log2: 'return Math.log2(v);',
  log10: 'return Math.log10(v);',
  exp2: 'return Math.pow(2, v);',
  tan: 'return Math.tan(v);',
  sinh: 'return Math.sinh(v);',
  cosh: 'return Math.cosh(v);',
  asin: 'return Math.asin(v);',
  acos: 'return Math.acos(v);',
  atan: 'return Math.atan(v);',
  erf: `const a = Math.abs(v);
    ${ERFC}
    if (a < 1) { return v * series; }
    if (v < 0) { return tail - 1; }
    return 1 - tail;`,
  leakyRelu: 'if (v > 0) { return v; } return v * p0;',
  gelu: `const w = v * 0.7071067811865476;
    const a = Math.abs(w);
    ${ERFC}
    if (a < 1) { return 0.5 * v * (1 + w * series); }
    if (v < 0) { return 0.5 * v * tail; }
    return 0.5 * v * (2 - tail);`,
  geluTanh: 'return v / (1 + Math.exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)));',
  silu: 'return v / (1 + Math.exp(-v));',
  softplus: 'if (v * p0 > p1) { return v; } return Math.log1p(Math.exp(v * p0)) / p0;',
  elu: 'if (v <= 0) { return p0 * Math.expm1(v); } return v;',
}

/**
 * `r`: what is left of va after vb, exactly, with the sign of va. Long division in base 2: doublings and the differences of numbers less than
 * twice apart do not round.
 */
const REST = `const big = 3.4028234663852886e38;
    const divisor = Math.abs(vb);
    let r = Math.abs(va);
    if (!(r <= big) || !(divisor > 0)) { r = 0 / 0; }
    if (r >= divisor) {
      let t = divisor;
      while (t + t <= r) { t = t + t; }
      while (t >= divisor) {
        if (r >= t) { r = r - t; }
        t = t * 0.5;
      }
    }
    if (va < 0 || 1 / va < 0) { r = -r; }`

/** The operations on bits have no place in float32; those of bool are other operations there. */
export type GpuBinaryOp = Exclude<BinaryOp, 'bitwiseAnd' | 'bitwiseOr' | 'bitwiseXor'> | CompareOp

export const BINARY_BODY: Readonly<Record<GpuBinaryOp, string>> = {
  add: 'return va + vb;',
  sub: 'return va - vb;',
  mul: 'return va * vb;',
  div: 'return va / vb;',
  maximum: 'return Math.max(va, vb);',
  minimum: 'return Math.min(va, vb);',
  // 1 to any power is 1, and -1 to an infinite one.
  power: 'if (va == 1) { return 1; } if (va == -1 && Math.abs(vb) > 3.4028235e38) { return 1; } return Math.pow(va, vb);',
  remainder: `${REST}
    if (r != 0 && ((vb < 0 && r > 0) || (vb > 0 && r < 0))) { r = r + vb; }
    return r;`,
  fmod: `${REST}
    return r;`,
  floorDivide: `if (vb == 0) { return va / vb; }
    ${REST}
    let q = (va - r) / vb;
    if (r != 0 && ((vb < 0 && r > 0) || (vb > 0 && r < 0))) { q = q - 1; }
    if (q == 0) { if (va / vb < 0) { return -0.0 * 1; } return 0 * (va / vb); }
    const down = Math.floor(q);
    if (q - down > 0.5) { return down + 1; }
    return down;`,
  atan2: 'return Math.atan2(va, vb);',
  eq: 'let t = 0; if (va == vb) { t = 1; } return t;',
  ne: 'let t = 0; if (va != vb) { t = 1; } return t;',
  lt: 'let t = 0; if (va < vb) { t = 1; } return t;',
  le: 'let t = 0; if (va <= vb) { t = 1; } return t;',
  gt: 'let t = 0; if (va > vb) { t = 1; } return t;',
  ge: 'let t = 0; if (va >= vb) { t = 1; } return t;',
}

/** Of the gradient `vg` and of `v`, the activation's argument or result. */
export const GRAD_BODY: Readonly<Record<GradOp, string>> = {
  reluBackward: 'if (v <= 0) { return 0; } return vg;',
  tanhBackward: 'return vg * (1 - v * v);',
  sigmoidBackward: 'return vg * (v * (1 - v));',
  leakyReluBackward: 'if (v > 0) { return vg; } return vg * p0;',
  eluBackward: 'if (v <= 0) { return vg * (p0 * Math.exp(v)); } return vg;',
  siluBackward: 'const s = 1 / (1 + Math.exp(-v)); return vg * (s * (1 + v * (1 - s)));',
  softplusBackward: 'if (v * p0 > p1) { return vg; } return vg / (1 + Math.exp(-v * p0));',
  geluBackward: `const w = v * 0.7071067811865476;
    const a = Math.abs(w);
    ${ERFC}
    let cdf = 0.5 * tail;
    if (v >= 0) { cdf = 1 - 0.5 * tail; }
    if (a < 1) { cdf = 0.5 + 0.5 * w * series; }
    return vg * (cdf + v * Math.exp(-0.5 * v * v) * 0.3989422804014327);`,
  geluTanhBackward: `if (v > 20) { return vg; }
    if (v < -20) { return 0 * vg; }
    const s = 1 / (1 + Math.exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)));
    return vg * (s + v * s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * v * v));`,
}

/** Constants: gStep, 0 or 1. */
export function gradSource(op: GradOp): string {
  return `function (g, x, p0, p1) {
    const vg = g[this.thread.x * this.constants.gStep];
    const v = x[this.thread.x];
    ${GRAD_BODY[op]}
  }`
}

export function unarySource(op: UnaryOp): string {
  return `function (x, p0, p1) {
    const v = x[this.thread.x];
    ${UNARY_BODY[op]}
  }`
}

/** Constants: aStep, bStep, 0 or 1. */
export function binarySource(op: GpuBinaryOp): string {
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
  prod: `function (x) {
    ${FIBRE}
    let total = 1;
    for (let j = 0; j < this.constants.k; j++) { total *= x[from + j * this.constants.inner]; }
    return total;
  }`,
  amin: `function (x) {
    ${FIBRE}
    let best = x[from];
    for (let j = 1; j < this.constants.k; j++) { best = Math.min(best, x[from + j * this.constants.inner]); }
    return best;
  }`,
  argmin: `function (x) {
    ${FIBRE}
    let best = x[from];
    let at = 0;
    for (let j = 1; j < this.constants.k; j++) {
      const v = x[from + j * this.constants.inner];
      if (best == best && (v < best || v != v)) { best = v; at = j; }
    }
    return at;
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

/** Where element `this.thread.x` of [outer, k, inner] stands in its fibre, and where that begins. */
const PLACE =
  'const place = Math.floor(this.thread.x / this.constants.inner) - Math.floor(this.thread.x / (this.constants.k * this.constants.inner)) * this.constants.k; const from = this.thread.x - place * this.constants.inner;'

/** How many elements of the fibre come before this one. Constants: k, inner, descending (1 or 0). NaN is the greatest; equals keep their order. */
export const RANK = `function (x) {
  ${PLACE}
  const v = x[this.thread.x];
  let rank = 0;
  for (let j = 0; j < this.constants.k; j++) {
    const w = x[from + j * this.constants.inner];
    let before = 0;
    let same = 0;
    if (w == v || (w != w && v != v)) { same = 1; }
    if (this.constants.descending == 1) { if (w > v || (w != w && v == v)) { before = 1; } }
    if (this.constants.descending == 0) { if (w < v || (v != v && w == w)) { before = 1; } }
    if (same == 1 && j < place) { before = 1; }
    rank += before;
  }
  return rank;
}`

/** Constants: k, inner. The divisor is an argument. */
export const VARIANCE = `function (x, divisor) {
  ${FIBRE}
  let total = 0;
  for (let j = 0; j < this.constants.k; j++) { total += x[from + j * this.constants.inner]; }
  const mean = total / this.constants.k;
  let squares = 0;
  for (let j = 0; j < this.constants.k; j++) {
    const d = x[from + j * this.constants.inner] - mean;
    squares += d * d;
  }
  return squares / divisor;
}`

/** Its root. Distances are measured in the largest of them, since in float32 their squares may be out of range. */
export const DEVIATION = `function (x, divisor) {
  ${FIBRE}
  let total = 0;
  for (let j = 0; j < this.constants.k; j++) { total += x[from + j * this.constants.inner]; }
  const mean = total / this.constants.k;
  let unit = 0;
  for (let j = 0; j < this.constants.k; j++) { unit = Math.max(unit, Math.abs(x[from + j * this.constants.inner] - mean)); }
  if (unit == 0 || unit != unit || unit > 3e38) { unit = 1; }
  let squares = 0;
  for (let j = 0; j < this.constants.k; j++) {
    const d = (x[from + j * this.constants.inner] - mean) / unit;
    squares += d * d;
  }
  return unit * Math.sqrt(squares / divisor);
}`

/** Each thread runs through its fibre up to its own place. Constants: k, inner. */
export const SCAN = {
  cumsum: `function (x) {
    ${PLACE}
    let total = 0;
    for (let j = 0; j < this.constants.k; j++) { if (j <= place) { total += x[from + j * this.constants.inner]; } }
    return total;
  }`,
  cumprod: `function (x) {
    ${PLACE}
    let total = 1;
    for (let j = 0; j < this.constants.k; j++) { if (j <= place) { total *= x[from + j * this.constants.inner]; } }
    return total;
  }`,
  reverseCumsum: `function (x) {
    ${PLACE}
    let total = 0;
    for (let j = 0; j < this.constants.k; j++) { if (j >= place) { total += x[from + j * this.constants.inner]; } }
    return total;
  }`,
} as const

/** Constants: k, inner. */
export const PRODUCT_BACKWARD = {
  prodBackward: `function (grad, x) {
    ${FIBRE_OF}
    ${PLACE}
    let product = grad[fibre];
    for (let j = 0; j < this.constants.k; j++) { if (j != place) { product *= x[from + j * this.constants.inner]; } }
    return product;
  }`,
  cumprodBackward: `function (grad, x) {
    ${PLACE}
    let product = 1;
    let total = 0;
    for (let j = 0; j < this.constants.k; j++) {
      if (j != place) { product *= x[from + j * this.constants.inner]; }
      if (j >= place) { total += grad[from + j * this.constants.inner] * product; }
    }
    return total;
  }`,
} as const

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

/** The steps of a softmax's derivative: sums along each fibre, results. Constants: k, inner. */
export const SOFTMAX_BACKWARD = {
  softmaxSums: `function (g, y) {
    ${FIBRE}
    let total = 0;
    for (let j = 0; j < this.constants.k; j++) { total += g[from + j * this.constants.inner] * y[from + j * this.constants.inner]; }
    return total;
  }`,
  softmaxBackward: `function (g, y, sums) {
    ${FIBRE_OF}
    return y[this.thread.x] * (g[this.thread.x] - sums[fibre]);
  }`,
  logSoftmaxBackward: `function (g, y, sums) {
    ${FIBRE_OF}
    return g[this.thread.x] - Math.exp(y[this.thread.x]) * sums[fibre];
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

/** The place of element `this.thread.x` in [outer, rows, inner], and the element of [outer, n, inner] at the same o, 0 and j. */
const ROW = `
    const block = Math.floor(this.thread.x / (this.constants.rows * this.constants.inner));
    const rest = this.thread.x - block * this.constants.rows * this.constants.inner;
    const row = Math.floor(rest / this.constants.inner);
    const first = block * this.constants.n * this.constants.inner + rest - row * this.constants.inner;`

/** Each element looks through all indices that may name it: no two threads write to one place. Constants: rows, n, inner. */
export const SUM_AT_INDICES = {
  indexAdd: `function (held, x, index) {${ROW}
    let total = held[this.thread.x];
    for (let i = 0; i < this.constants.n; i++) {
      if (index[i] == row) { total += x[first + i * this.constants.inner]; }
    }
    return total;
  }`,
  scatterAdd: `function (held, x, index) {${ROW}
    let total = held[this.thread.x];
    for (let i = 0; i < this.constants.n; i++) {
      const at = first + i * this.constants.inner;
      if (index[at] == row) { total += x[at]; }
    }
    return total;
  }`,
} as const
