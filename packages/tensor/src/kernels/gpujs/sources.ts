/**
 * The gpu.js kernels, each once, as the text of a function. Text, because gpu.js compiles the text of functions: tools that rewrite
 * functions (coverage, bundlers) would break them. `elementwise.ts`, `rows.ts` and `products.ts` run them.
 *
 * Rules: arguments are flat arrays and numbers; sizes and strides are integer constants, which also bound every loop (a bound that is an
 * argument stops at 1000 silently); one number is returned per thread. Indices pass through float32, so they are exact below 2^24.
 */

/** A gradient times a slope, with the body of the op's row, as the next two. Constants: gStep, 0 or 1. */
export function gradSource(body: string): string {
  return `function (g, x, p0, p1) {
    const vg = g[this.thread.x * this.constants.gStep];
    const v = x[this.thread.x];
    ${body}
  }`
}

export function unarySource(body: string): string {
  return `function (x, p0, p1) {
    const v = x[this.thread.x];
    ${body}
  }`
}

/** Constants: aStep, bStep, 0 or 1. */
export function binarySource(body: string): string {
  return `function (a, b) {
    const va = a[this.thread.x * this.constants.aStep];
    const vb = b[this.thread.x * this.constants.bStep];
    ${body}
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

/** Where fibre `this.thread.x` of [outer, k, inner] begins; its elements are `inner` apart. Constants of all that goes along fibres: k, inner. */
const FIBRE =
  'const row = Math.floor(this.thread.x / this.constants.inner); const from = row * (this.constants.k - 1) * this.constants.inner + this.thread.x;'

/** The loop along a fibre: `body` with its place j, and the place in the whole, `at`. */
const along = (body: string): string => `
    for (let j = 0; j < this.constants.k; j++) { const at = from + j * this.constants.inner; ${body} }`

/** A fibre's total, from `start` on. */
const reduction = (start: string, body: string): string => `function (x) {
    ${FIBRE}
    let total = ${start};
    ${along(body)}
    return total;
  }`

/** The first of the best. A NaN that is held stays; else a better one or the first NaN takes its place. */
const placeOf = (better: string): string => `function (x) {
    ${FIBRE}
    let best = x[from];
    let place = 0;
    ${along(`const v = x[at]; if (best == best && (v ${better} best || v != v)) { best = v; place = j; }`)}
    return place;
  }`

export const REDUCTION = {
  sum: reduction('0', 'total += x[at];'),
  amax: reduction('x[from]', 'total = Math.max(total, x[at]);'),
  prod: reduction('1', 'total *= x[at];'),
  amin: reduction('x[from]', 'total = Math.min(total, x[at]);'),
  argmin: placeOf('<'),
  argmax: placeOf('>'),
} as const

/** The fibre to which element `this.thread.x` of [outer, k, inner] belongs. */
const FIBRE_OF =
  'const fibre = Math.floor(this.thread.x / (this.constants.k * this.constants.inner)) * this.constants.inner + this.thread.x - Math.floor(this.thread.x / this.constants.inner) * this.constants.inner;'

/** The place of element `this.thread.x` of [outer, k, inner] in its fibre, and the fibre's begin. */
const PLACE =
  'const place = Math.floor(this.thread.x / this.constants.inner) - Math.floor(this.thread.x / (this.constants.k * this.constants.inner)) * this.constants.k; const from = this.thread.x - place * this.constants.inner;'

/** How many elements of the fibre come before this one. One more constant: descending (1 or 0). NaN is the greatest; equals keep their order. */
export const RANK = `function (x) {
  ${PLACE}
  const v = x[this.thread.x];
  let rank = 0;
  ${along(`
    const w = x[at];
    let before = 0;
    let same = 0;
    if (w == v || (w != w && v != v)) { same = 1; }
    if (this.constants.descending == 1) { if (w > v || (w != w && v == v)) { before = 1; } }
    if (this.constants.descending == 0) { if (w < v || (v != v && w == w)) { before = 1; } }
    if (same == 1 && j < place) { before = 1; }
    rank += before;`)}
  return rank;
}`

const MEAN = `
  ${FIBRE}
  let total = 0;
  ${along('total += x[at];')}
  const mean = total / this.constants.k;
  let squares = 0;`

/** The divisor is an argument. */
export const VARIANCE = `function (x, divisor) { ${MEAN}
  ${along('const d = x[at] - mean; squares += d * d;')}
  return squares / divisor;
}`

/** Its root. Distances are measured in the largest of them, since in float32 their squares may be out of range. */
export const DEVIATION = `function (x, divisor) { ${MEAN}
  let unit = 0;
  ${along('unit = Math.max(unit, Math.abs(x[at] - mean));')}
  if (unit == 0 || unit != unit || unit > 3e38) { unit = 1; }
  ${along('const d = (x[at] - mean) / unit; squares += d * d;')}
  return unit * Math.sqrt(squares / divisor);
}`

/** Each thread runs through its fibre; `body` adds up what its own place has of it. */
const running = (start: string, body: string): string => `function (x) {
    ${PLACE}
    let total = ${start};
    ${along(body)}
    return total;
  }`

export const SCAN = {
  cumsum: running('0', 'if (j <= place) { total += x[at]; }'),
  cumprod: running('1', 'if (j <= place) { total *= x[at]; }'),
  reverseCumsum: running('0', 'if (j >= place) { total += x[at]; }'),
} as const

export const PRODUCT_BACKWARD = {
  prodBackward: `function (grad, x) {
    ${FIBRE_OF}
    ${PLACE}
    let product = grad[fibre];
    ${along('if (j != place) { product *= x[at]; }')}
    return product;
  }`,
  cumprodBackward: `function (grad, x) {
    ${PLACE}
    let product = 1;
    let total = 0;
    ${along('if (j != place) { product *= x[at]; } if (j >= place) { total += grad[at] * product; }')}
    return total;
  }`,
} as const

/** The steps of a softmax after the maxima: exponentials, (their sums: REDUCTION.sum), results. */
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

/** The steps of a softmax's derivative: sums along each fibre, results. */
export const SOFTMAX_BACKWARD = {
  sums: `function (g, y) {
    ${FIBRE}
    let total = 0;
    ${along('total += g[at] * y[at];')}
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

/** The greatest of row `row` of x, and the sum of exponentials of the distances from it. */
const ROW_OF_SCORES = `
  const from = row * this.constants.classes;
  let greatest = x[from];
  for (let j = 0; j < this.constants.classes; j++) {
    if (x[from + j] > greatest) { greatest = x[from + j]; }
  }
  let total = 0;
  for (let j = 0; j < this.constants.classes; j++) { total += Math.exp(x[from + j] - greatest); }`

/** Constants: classes. Targets come as float32. */
export const CLASS_LOSS = `function (x, target) {
  const row = this.thread.x;${ROW_OF_SCORES}
  return Math.log(total) - (x[from + target[row]] - greatest);
}`

/** Constants: classes, gradStep. */
export const CLASS_LOSS_BACKWARD = `function (grad, x, target) {
  const row = Math.floor(this.thread.x / this.constants.classes);${ROW_OF_SCORES}
  const slope = grad[row * this.constants.gradStep];
  let v = slope * (Math.exp(x[this.thread.x] - greatest) / total);
  if (target[row] == this.thread.x - from) { v = v - slope; }
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
