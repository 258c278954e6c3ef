/** The recorded operations at indices: each raw one joined with its row, its arguments in PyTorch's order. `../api/functions.ts` joins them with all others. */
import type { Tensor } from '@postgrad/tensor'
import { type IndexingOps, raw } from '@postgrad/tensor/internal'
import type { TensorOps } from '../graph/formula.js'
import { recordMany } from '../record/record-many.js'
import { indexed } from './derivatives.js'

/** @param recorded all recorded operations, for formulas under createGraph; called late, since it is made of these */
export function indexingFunctions(recorded: () => TensorOps): IndexingOps<Tensor> {
  const indexSelect = recordMany(
    'indexSelect',
    (x: Tensor, i: Tensor, dim: number) => raw.indexSelect(x, dim, i),
    indexed.indexSelect,
    recorded,
  )
  const gather = recordMany('gather', (x: Tensor, i: Tensor, dim: number) => raw.gather(x, dim, i), indexed.gather, recorded)
  const indexAdd = recordMany(
    'indexAdd',
    (x: Tensor, i: Tensor, y: Tensor, dim: number) => raw.indexAdd(x, dim, i, y),
    indexed.indexAdd,
    recorded,
  )
  const scatterAdd = recordMany(
    'scatterAdd',
    (x: Tensor, i: Tensor, y: Tensor, dim: number) => raw.scatterAdd(x, dim, i, y),
    indexed.scatterAdd,
    recorded,
  )
  const scatter = recordMany(
    'scatter',
    (x: Tensor, i: Tensor, y: Tensor, dim: number) => raw.scatter(x, dim, i, y),
    indexed.scatter,
    recorded,
  )
  const constantPad = recordMany('constantPad', raw.constantPad, indexed.constantPad, recorded)
  // A number for src passes for a tensor that needs no gradient.
  return {
    indexSelect: (x, dim, index) => indexSelect(x, index, dim),
    gather: (x, dim, index) => gather(x, index, dim),
    indexAdd: (x, dim, index, src) => indexAdd(x, index, src, dim),
    scatterAdd: (x, dim, index, src) => scatterAdd(x, index, src, dim),
    scatter: (x, dim, index, src) => scatter(x, index, (typeof src === 'boolean' ? Number(src) : src) as Tensor, dim),
    constantPad: (x, pads, value) => constantPad(x, pads, value),
    nonzero: raw.nonzero,
    oneHot: raw.oneHot,
  }
}
