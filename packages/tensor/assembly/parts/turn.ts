/** Transposes in registers, for copies (`move.ts`), for the panels of products (`matmul.ts`) and for the tiles of convolutions (`direct.ts`). */

/** A block of 4 × 4 of four bytes each becomes its transpose: runs of x are `xStep` bytes apart, those of out `outStep`. */
@inline export function turn4(x: usize, xStep: usize, out: usize, outStep: usize): void {
  storeTurned4(v128.load(x), v128.load(x + xStep), v128.load(x + 2 * xStep), v128.load(x + 3 * xStep), out, outStep)
}

/** The same of a block in registers. */
@inline export function storeTurned4(r0: v128, r1: v128, r2: v128, r3: v128, out: usize, outStep: usize): void {
  const t0 = v128.shuffle<f32>(r0, r1, 0, 4, 1, 5)
  const t1 = v128.shuffle<f32>(r0, r1, 2, 6, 3, 7)
  const t2 = v128.shuffle<f32>(r2, r3, 0, 4, 1, 5)
  const t3 = v128.shuffle<f32>(r2, r3, 2, 6, 3, 7)
  v128.store(out, v128.shuffle<f32>(t0, t2, 0, 1, 4, 5))
  v128.store(out + outStep, v128.shuffle<f32>(t0, t2, 2, 3, 6, 7))
  v128.store(out + 2 * outStep, v128.shuffle<f32>(t1, t3, 0, 1, 4, 5))
  v128.store(out + 3 * outStep, v128.shuffle<f32>(t1, t3, 2, 3, 6, 7))
}

/** A block of 2 × 2 of eight bytes each, likewise. */
@inline export function turn2(x: usize, xStep: usize, out: usize, outStep: usize): void {
  storeTurned2(v128.load(x), v128.load(x + xStep), out, outStep)
}

/** The same of a block in registers. */
@inline export function storeTurned2(r0: v128, r1: v128, out: usize, outStep: usize): void {
  v128.store(out, v128.shuffle<f64>(r0, r1, 0, 2))
  v128.store(out + outStep, v128.shuffle<f64>(r0, r1, 1, 3))
}
