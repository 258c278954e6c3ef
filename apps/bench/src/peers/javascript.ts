/** Plain JavaScript, as somebody without a library would write it. Our kernels must beat it. */
import type { Contestant } from '../row.js'
import { numbersOf, whenAsked } from '../timed.js'

const TILE = 64

/** [size, size] · [size, size] in tiles, n times. */
export function matmulTiles(size: number): Contestant {
  return whenAsked(() => {
    const [a, b] = [numbersOf(size * size), numbersOf(size * size)]
    return () => {
      const out = new Float32Array(size * size)
      for (let p0 = 0; p0 < size; p0 += TILE) {
        const p1 = Math.min(p0 + TILE, size)
        for (let i = 0; i < size; i++) {
          for (let p = p0; p < p1; p++) {
            const x = a[i * size + p]!
            for (let j = 0; j < size; j++) out[i * size + j]! += x * b[p * size + j]!
          }
        }
      }
    }
  })
}

/** A function of every element of a vector, n times. */
export function elementwise(length: number, f: (x: number) => number): Contestant {
  return whenAsked(() => {
    const x = numbersOf(length)
    return () => {
      const out = new Float32Array(length)
      for (let i = 0; i < length; i++) out[i] = f(x[i]!)
    }
  })
}

/** The limit of what moves every element once: copying a vector into memory that is warm. */
export function warmCopy(length: number): Contestant {
  return whenAsked(() => {
    const [x, y] = [numbersOf(length), new Float32Array(length)]
    return () => y.set(x)
  })
}

/** The limit of small networks: the arithmetic of a [1, 4] → 128 → 2 policy with tanh, forward and backward, and nothing else. */
export function policyArithmetic(hidden: number): Contestant {
  const [inputs, actions] = [4, 2]
  return whenAsked(() => {
    const [w1, b1, w2, b2, x] = [
      numbersOf(hidden * inputs),
      numbersOf(hidden),
      numbersOf(actions * hidden),
      numbersOf(actions),
      numbersOf(inputs),
    ]
    return () => {
      const h = new Float32Array(hidden)
      for (let i = 0; i < hidden; i++) {
        let sum = b1[i]!
        for (let k = 0; k < inputs; k++) sum += w1[i * inputs + k]! * x[k]!
        h[i] = Math.tanh(sum)
      }
      const logits = new Float32Array(actions)
      let total = 0
      for (let j = 0; j < actions; j++) {
        let sum = b2[j]!
        for (let i = 0; i < hidden; i++) sum += w2[j * hidden + i]! * h[i]!
        logits[j] = Math.exp(sum)
        total += logits[j]!
      }
      const [dw1, db1, dw2, db2] = [new Float32Array(hidden * inputs), new Float32Array(hidden), new Float32Array(actions * hidden), logits]
      for (let j = 0; j < actions; j++) db2[j] = logits[j]! / total - (j === 0 ? 1 : 0)
      for (let i = 0; i < hidden; i++) {
        let dh = 0
        for (let j = 0; j < actions; j++) {
          dh += db2[j]! * w2[j * hidden + i]!
          dw2[j * hidden + i] = db2[j]! * h[i]!
        }
        db1[i] = dh * (1 - h[i]! * h[i]!)
        for (let k = 0; k < inputs; k++) dw1[i * inputs + k] = db1[i]! * x[k]!
      }
    }
  })
}
