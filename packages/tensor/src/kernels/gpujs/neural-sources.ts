/** The gpu.js kernels of neural networks, as the text of functions; rules as in `sources.ts`. Constants of convolutions: their geometry, cg and og. */

/** Splits `this.thread.x` into (n, channel, row, column) of [·, channels, rows, columns], named by the caller. */
const place = (channels: string, rows: string, columns: string): string => `
    const q = Math.floor(this.thread.x / this.constants.${columns});
    const px = this.thread.x - q * this.constants.${columns};
    const r = Math.floor(q / this.constants.${rows});
    const py = q - r * this.constants.${rows};
    const n = Math.floor(r / this.constants.${channels});
    const channel = r - n * this.constants.${channels};`

/** Where the window of the place (py, px) of the result begins. */
const begin = `
    const y0 = py * this.constants.strideH - this.constants.padH;
    const x0 = px * this.constants.strideW - this.constants.padW;`

/** The loop through the places (ky, kx) of a window. */
const kernel = (body: string): string => `
    for (let ky = 0; ky < this.constants.kh; ky++) {
      for (let kx = 0; kx < this.constants.kw; kx++) { ${body} }
    }`

/** The loop through what the window that begins at (y0, x0) sees: at (iy, ix). */
const seen = (body: string): string =>
  kernel(`
        const iy = y0 + ky * this.constants.dilH;
        const ix = x0 + kx * this.constants.dilW;
        if (iy >= 0 && iy < this.constants.h && ix >= 0 && ix < this.constants.w) { ${body} }`)

/** The loop through the windows that see the place (py, px): those of the places (oy, ox) of the result. */
const seeing = (body: string): string =>
  kernel(`
        const ty = py + this.constants.padH - ky * this.constants.dilH;
        const tx = px + this.constants.padW - kx * this.constants.dilW;
        const oy = Math.floor(ty / this.constants.strideH);
        const ox = Math.floor(tx / this.constants.strideW);
        const fits = oy * this.constants.strideH == ty && ox * this.constants.strideW == tx;
        if (fits && oy >= 0 && oy < this.constants.oh && ox >= 0 && ox < this.constants.ow) { ${body} }`)

export const CONV = {
  conv2d: `function (x, weight) {
    ${place('o', 'oh', 'ow')}
    ${begin}
    const first = Math.floor(channel / this.constants.og) * this.constants.cg;
    let total = 0;
    for (let c = 0; c < this.constants.cg; c++) {
      ${seen(`
        total += x[((n * this.constants.c + first + c) * this.constants.h + iy) * this.constants.w + ix]
          * weight[((channel * this.constants.cg + c) * this.constants.kh + ky) * this.constants.kw + kx];`)}
    }
    return total;
  }`,
  conv2dInput: `function (grad, weight) {
    ${place('c', 'h', 'w')}
    const group = Math.floor(channel / this.constants.cg);
    const c = channel - group * this.constants.cg;
    let total = 0;
    for (let i = 0; i < this.constants.og; i++) {
      const o = group * this.constants.og + i;
      ${seeing(`
        total += grad[((n * this.constants.o + o) * this.constants.oh + oy) * this.constants.ow + ox]
          * weight[((o * this.constants.cg + c) * this.constants.kh + ky) * this.constants.kw + kx];`)}
    }
    return total;
  }`,
  conv2dWeight: `function (x, grad) {
    ${place('cg', 'kh', 'kw')}
    const from = Math.floor(n / this.constants.og) * this.constants.cg + channel;
    let total = 0;
    for (let image = 0; image < this.constants.n; image++) {
      for (let oy = 0; oy < this.constants.oh; oy++) {
        for (let ox = 0; ox < this.constants.ow; ox++) {
          const iy = oy * this.constants.strideH - this.constants.padH + py * this.constants.dilH;
          const ix = ox * this.constants.strideW - this.constants.padW + px * this.constants.dilW;
          if (iy >= 0 && iy < this.constants.h && ix >= 0 && ix < this.constants.w) {
            total += x[((image * this.constants.c + from) * this.constants.h + iy) * this.constants.w + ix]
              * grad[((image * this.constants.o + n) * this.constants.oh + oy) * this.constants.ow + ox];
          }
        }
      }
    }
    return total;
  }`,
} as const

/** The plane of pools is the channel of one image. */
const window = `${place('planes', 'oh', 'ow')} ${begin}`
const SEEN = 'x[(channel * this.constants.h + iy) * this.constants.w + ix]'

/** The loop that finds a window's maximum, in `best`, and its place, in `at`: a NaN replaces what it has. A window that sees nothing has -∞. */
const maximum = `
    ${window}
    let best = 0;
    let at = -1;
    ${seen(`
      const v = ${SEEN};
      if (at < 0 || v > best || v != v) { best = v; at = iy * this.constants.w + ix; }`)}
    if (at < 0) {
      let top = y0; let left = x0;
      if (y0 < 0) { top = y0 + Math.ceil(-y0 / this.constants.dilH) * this.constants.dilH; }
      if (x0 < 0) { left = x0 + Math.ceil(-x0 / this.constants.dilW) * this.constants.dilW; }
      at = top * this.constants.w + left;
      const nothing = 0;
      best = -1 / nothing;
    }`

/** The divisor of the sum of the window at (y0, x0), in `by`. */
const divisor = `
    let by = this.constants.divisor;
    if (by == 0) {
      let top = y0; let left = x0;
      let bottom = Math.min(y0 + this.constants.kh, this.constants.h + this.constants.padH);
      let right = Math.min(x0 + this.constants.kw, this.constants.w + this.constants.padW);
      if (this.constants.includePad == 0) {
        top = Math.max(y0, 0); left = Math.max(x0, 0);
        bottom = Math.min(bottom, this.constants.h); right = Math.min(right, this.constants.w);
      }
      by = (bottom - top) * (right - left);
    }`

/** Constants: the geometry. */
export const POOL = {
  maxima: `function (x) { ${maximum}
    return best;
  }`,
  places: `function (x) { ${maximum}
    return at;
  }`,
  means: `function (x) { ${window}
    ${divisor}
    let total = 0;
    ${seen(`total += ${SEEN};`)}
    let mean = 0;
    if (total != 0) { mean = total / by; }
    return mean;
  }`,
  // One thread per element of the plane: which windows see it.
  spread: `function (grad) {
    ${place('planes', 'h', 'w')}
    let total = 0;
    ${seeing(`
      const y0 = py - ky;
      const x0 = px - kx;
      ${divisor}
      total += grad[(channel * this.constants.oh + oy) * this.constants.ow + ox] / by;`)}
    return total;
  }`,
} as const

/**
 * Normalisation. Elements that share statistics are `many` runs of `run` elements, `step` apart, from stat · `first` on; those that share a weight
 * likewise with `wMany`, `wRun`, `wStep`, `wFirst`. Element i belongs to statistics floor(i / per) mod stats and weight floor(i / wPer) mod weights.
 */
const sums = (first: string, many: string, run: string, step: string, body: string): string => `
    const from = this.thread.x * this.constants.${first};
    let total = 0;
    for (let a = 0; a < this.constants.${many}; a++) {
      for (let b = 0; b < this.constants.${run}; b++) {
        const i = from + a * this.constants.${step} + b;
        ${body}
      }
    }`
const mean = (body: string): string => `${sums('first', 'many', 'run', 'step', body)}
    return total / (this.constants.many * this.constants.run);`
const column = (body: string): string => `${sums('wFirst', 'wMany', 'wRun', 'wStep', body)}
    return total;`
const belongs = (i: string): string => `
    const sq = Math.floor(${i} / this.constants.per);
    const stat = sq - Math.floor(sq / this.constants.stats) * this.constants.stats;
    const wq = Math.floor(${i} / this.constants.wPer);
    const column = wq - Math.floor(wq / this.constants.weights) * this.constants.weights;`

export const NORM = {
  mean: `function (x) { ${mean('total += x[i];')} }`,
  variance: `function (x, mean) {
    const m = mean[this.thread.x]; ${mean('total += (x[i] - m) * (x[i] - m);')}
  }`,
  rstd: 'function (variance, eps) { return 1 / Math.sqrt(variance[this.thread.x] + eps); }',
  apply: `function (x, mean, rstd, weight, bias) { ${belongs('this.thread.x')}
    return (x[this.thread.x] - mean[stat]) * rstd[stat] * weight[column] + bias[column];
  }`,
  // Σ g w and Σ g w x̂ over those that share statistics.
  first: `function (grad, weight) { ${mean(`${belongs('i')} total += grad[i] * weight[column];`)} }`,
  second: `function (grad, weight, x, mean, rstd) {
    ${mean(`${belongs('i')} total += grad[i] * weight[column] * (x[i] - mean[stat]) * rstd[stat];`)}
  }`,
  backward: `function (grad, weight, x, mean, rstd, first, second) { ${belongs('this.thread.x')}
    return rstd[stat] * (grad[this.thread.x] * weight[column] - first[stat] - (x[this.thread.x] - mean[stat]) * rstd[stat] * second[stat]);
  }`,
  weight: `function (grad, x, mean, rstd) { ${column(`${belongs('i')} total += grad[i] * (x[i] - mean[stat]) * rstd[stat];`)} }`,
  bias: `function (grad) { ${column('total += grad[i];')} }`,
} as const
