/** allReduce of sparse rows: each rank sends its rows to each other, and adds them up row by row in the order of the ranks. PyTorch: gloo's sparse allreduce. */
import { SparseTensor, type Tensor } from '@postgrad/tensor'
import { coalesce, raw, sameShape } from '@postgrad/tensor/internal'
import { type Algorithm, exchange, type Place } from '../common/step.js'
import { invalid } from './parts.js'

/** Gives a new tensor, coalesced: nobody writes to the parts of a sparse one. */
export function* allReduceSparse(place: Place, own: SparseTensor): Algorithm<SparseTensor> {
  const came = yield exchange(place, () => [own])
  const all: SparseTensor[] = []
  for (let rank = 0; rank < place.size; rank++) {
    const part = rank === place.rank ? own : (came[rank]?.[0] as Tensor | undefined)
    if (part === undefined || !(part as Tensor).isSparse || part.dtype !== own.dtype || !sameShape(part.shape, own.shape)) {
      throw invalid('sparse rows of the shape that was agreed on')
    }
    all.push(part as SparseTensor)
  }
  const values = raw.cat(all.map((each) => each.values()))
  return coalesce(new SparseTensor(raw.cat(all.map((each) => each.indices())), values, own.shape))
}
