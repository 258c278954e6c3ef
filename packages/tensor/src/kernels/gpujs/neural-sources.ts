/** The gpu.js kernels of neural networks, as the text of functions; rules as in `sources.ts`. Constants of convolutions: their geometry, cg and og. */

/** Splits `this.thread.x` into (n, channel, row, column) of [·, channels, rows, columns], named by the caller. */
const place = (channels: string, rows: string, columns: string): string => `
    const q = Math.floor(this.thread.x / this.constants.${columns});
    const px = this.thread.x - q * this.constants.${columns};
    const r = Math.floor(q / this.constants.${rows});
    const py = q - r * this.constants.${rows};
    const n = Math.floor(r / this.constants.${channels});
    const channel = r - n * this.constants.${channels};`

export const CONV = {
  conv2d: `function (x, weight) {
    ${place('o', 'oh', 'ow')}
    const first = Math.floor(channel / this.constants.og) * this.constants.cg;
    const y0 = py * this.constants.strideH - this.constants.padH;
    const x0 = px * this.constants.strideW - this.constants.padW;
    let total = 0;
    for (let c = 0; c < this.constants.cg; c++) {
      for (let ky = 0; ky < this.constants.kh; ky++) {
        for (let kx = 0; kx < this.constants.kw; kx++) {
          const iy = y0 + ky * this.constants.dilH;
          const ix = x0 + kx * this.constants.dilW;
          if (iy >= 0 && iy < this.constants.h && ix >= 0 && ix < this.constants.w) {
            total += x[((n * this.constants.c + first + c) * this.constants.h + iy) * this.constants.w + ix]
              * weight[((channel * this.constants.cg + c) * this.constants.kh + ky) * this.constants.kw + kx];
          }
        }
      }
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
      for (let ky = 0; ky < this.constants.kh; ky++) {
        for (let kx = 0; kx < this.constants.kw; kx++) {
          const ty = py + this.constants.padH - ky * this.constants.dilH;
          const tx = px + this.constants.padW - kx * this.constants.dilW;
          const oy = Math.floor(ty / this.constants.strideH);
          const ox = Math.floor(tx / this.constants.strideW);
          if (oy >= 0 && oy < this.constants.oh && oy * this.constants.strideH == ty && ox >= 0 && ox < this.constants.ow && ox * this.constants.strideW == tx) {
            total += grad[((n * this.constants.o + o) * this.constants.oh + oy) * this.constants.ow + ox]
              * weight[((o * this.constants.cg + c) * this.constants.kh + ky) * this.constants.kw + kx];
          }
        }
      }
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
