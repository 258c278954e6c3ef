/** Composites that copy elements to other places: repeated, rolled, turned round, padded. */

import type { Ops } from '../ops/ops.js'
import type { PadMode, RearrangeOps } from '../ops/ops-indexing.js'
import { checkedIndices } from '../raw/indices.js'
import { checkPads } from '../raw/join.js'
import { checkReadable, elementsOf } from '../tensor/bytes.js'
import { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { normalizeDim, normalizeDims } from '../values/shape.js'

type Names = 'repeat' | 'tile' | 'repeatInterleave' | 'roll' | 'flip' | 'pad' | 'meshgrid' | 'hstack' | 'vstack'

export function arrangeComposites(ops: Ops<Tensor>): Pick<RearrangeOps<Tensor>, Names> {
  return {
    repeat(x, repeats) {
      const extra = repeats.length - x.ndim
      if (extra < 0 || repeats.some((n) => !Number.isSafeInteger(n) || n < 0)) {
        throw invalidArgument('repeat', `counts ≥ 0 for at least the ${x.ndim} dimensions`, shapeText(repeats), 'Use tile() for fewer.')
      }
      const shape = [...new Array<number>(extra).fill(1), ...x.shape]
      // [n] → [1, n] → [times, n] → [times · n], for every dimension at once: one copy.
      const between = ops.reshape(
        x,
        shape.flatMap((n) => [1, n]),
      )
      const spread = ops.expand(
        between,
        shape.flatMap((n, d) => [repeats[d]!, n]),
      )
      const out = ops.reshape(
        spread,
        shape.map((n, d) => n * repeats[d]!),
      )
      return own(x, out, ops)
    },

    tile(x, repeats) {
      return ops.repeat(x, [...new Array<number>(Math.max(x.ndim - repeats.length, 0)).fill(1), ...repeats])
    },

    repeatInterleave(x, repeats, dim) {
      const source = dim === undefined ? ops.reshape(x, [x.numel]) : x
      const d = normalizeDim('repeatInterleave', dim ?? 0, source.ndim)
      if (source.ndim === 0) return ops.repeatInterleave(ops.reshape(source, [1]), repeats, 0)
      const extent = source.shape[d]!
      if (typeof repeats !== 'number') return ops.indexSelect(source, d, repeated(repeats, extent))
      if (!Number.isSafeInteger(repeats) || repeats < 0) throw invalidArgument('repeatInterleave', 'a count ≥ 0', repeats)
      const shape = source.shape
      const spread = ops.expand(ops.unsqueeze(source, d + 1), [...shape.slice(0, d + 1), repeats, ...shape.slice(d + 1)])
      return own(x, ops.reshape(spread, shape.with(d, extent * repeats)), ops)
    },

    roll(x, shifts, dims) {
      if (dims === undefined) {
        if (typeof shifts !== 'number' && shifts.length !== 1) {
          throw invalidArgument('roll', 'one shift where no dimensions are given', shapeText(shifts), 'Name the dimensions.')
        }
        return own(
          x,
          ops.reshape(rolled(ops, ops.reshape(x, [x.numel]), typeof shifts === 'number' ? shifts : shifts[0]!, 0), x.shape),
          ops,
        )
      }
      const by = typeof shifts === 'number' ? [shifts] : shifts
      const along = typeof dims === 'number' ? [dims] : dims
      if (by.length !== along.length) throw invalidArgument('roll', 'a shift for each dimension', `${by.length} for ${along.length}`)
      let out = x
      for (const [i, dim] of along.entries()) out = rolled(ops, out, by[i]!, normalizeDim('roll', dim, x.ndim))
      return own(x, out, ops)
    },

    flip(x, dims) {
      let out = x
      // No dimensions are none here.
      for (const d of typeof dims !== 'number' && dims.length === 0 ? [] : normalizeDims('flip', dims, x.ndim)) {
        const extent = x.shape[d]!
        if (extent > 1)
          out = ops.indexSelect(
            out,
            d,
            vector(x, extent, (i) => extent - 1 - i),
          )
      }
      return own(x, out, ops)
    },

    pad(x, pads, options = {}) {
      const mode = options.mode ?? 'constant'
      if (mode === 'constant') return ops.constantPad(x, pads, options.value)
      if (mode !== 'reflect' && mode !== 'replicate' && mode !== 'circular') {
        throw invalidArgument('pad', "the mode 'constant', 'reflect', 'replicate' or 'circular'", String(mode))
      }
      let out = x
      checkPads('pad', x.shape, pads)
      for (let i = 0; i < pads.length; i += 2) {
        const d = x.ndim - 1 - i / 2
        const [before, behind] = [pads[i]!, pads[i + 1]!]
        if (before === 0 && behind === 0) continue
        const extent = x.shape[d]!
        checkPad(mode, d, extent, before, behind)
        out = ops.indexSelect(
          out,
          d,
          vector(x, before + extent + behind, (i) => sourceOf(mode, i - before, extent)),
        )
      }
      return own(x, out, ops)
    },

    meshgrid(tensors, indexing = 'ij') {
      if (indexing !== 'ij' && indexing !== 'xy') throw invalidArgument('meshgrid', "the indexing 'ij' or 'xy'", String(indexing))
      for (const t of tensors) {
        if (t.ndim > 1) throw shapeMismatch('meshgrid', 'vectors', shapeText(t.shape), 'Flatten them with reshape([-1]).')
      }
      const shape = tensors.map((t) => t.numel)
      const grids = tensors.map((t, i) =>
        ops.expand(
          ops.reshape(
            t,
            shape.map((n, d) => (d === i ? n : 1)),
          ),
          shape,
        ),
      )
      return indexing === 'xy' && tensors.length > 1 ? grids.map((grid) => ops.transpose(grid, 0, 1)) : grids
    },

    hstack(tensors) {
      const parts = tensors.map((t) => (t.ndim === 0 ? ops.reshape(t, [1]) : t))
      return ops.cat(parts, (parts[0]?.ndim ?? 1) === 1 ? 0 : 1)
    },

    vstack(tensors) {
      return ops.cat(
        tensors.map((t) => (t.ndim < 2 ? ops.reshape(t, [1, t.numel]) : t)),
        0,
      )
    },
  }
}

/** These operations promise a tensor of its own: a copy where nothing was moved. */
function own(x: Tensor, out: Tensor, ops: Ops<Tensor>): Tensor {
  return out.storage === x.storage ? ops.clone(out) : out
}

/** Indices for an operation on `x`. */
function vector(x: Tensor, length: number, at: (i: number) => number): Tensor {
  const out = new Int32Array(length)
  for (let i = 0; i < length; i++) out[i] = at(i)
  return Tensor.over('int32', [length], out, x.storage.memory)
}

function rolled(ops: Ops<Tensor>, x: Tensor, shift: number, d: number): Tensor {
  if (!Number.isSafeInteger(shift)) throw invalidArgument('roll', 'an integer shift', shift)
  const extent = x.shape[d] ?? 1
  const by = extent === 0 ? 0 : ((shift % extent) + extent) % extent
  if (by === 0) return x
  return ops.cat([ops.narrow(x, d, extent - by, by), ops.narrow(x, d, 0, extent - by)], d)
}

/** For [2, 0, 1]: 0, 0, 2. */
function repeated(counts: Tensor, extent: number): Tensor {
  if (counts.ndim > 1 || (counts.numel !== extent && counts.numel !== 1)) {
    throw shapeMismatch('repeatInterleave', `counts [${extent}] or []`, shapeText(counts.shape), 'Give one count for each element.')
  }
  checkReadable('repeatInterleave', counts)
  const each = elementsOf(checkedIndices('repeatInterleave', counts, Number.MAX_SAFE_INTEGER))
  const index: number[] = []
  for (let i = 0; i < extent; i++) {
    const count = each[each.length === 1 ? 0 : i]!
    for (let j = 0; j < count; j++) index.push(i)
  }
  return vector(counts, index.length, (i) => index[i]!)
}

type MirrorMode = Exclude<PadMode, 'constant'>

function checkPad(mode: MirrorMode, d: number, extent: number, before: number, behind: number): void {
  const most = mode === 'reflect' ? extent - 1 : mode === 'circular' ? extent : extent > 0 ? Number.POSITIVE_INFINITY : 0
  if (before >= 0 && behind >= 0 && before <= most && behind <= most) return
  const limit = most === Number.POSITIVE_INFINITY ? 'pads ≥ 0' : `pads from 0 to ${Math.max(most, 0)}`
  throw invalidArgument('pad', `${limit} for mode '${mode}' and the ${extent} elements of dimension ${d}`, `${before} and ${behind}`)
}

/** Which element stands at place `i` counted from the first element. */
function sourceOf(mode: MirrorMode, i: number, extent: number): number {
  if (mode === 'replicate') return Math.min(Math.max(i, 0), extent - 1)
  if (mode === 'circular') return (i + extent) % extent
  return i < 0 ? -i : i < extent ? i : 2 * (extent - 1) - i
}
