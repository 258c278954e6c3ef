/** All operations without gradients, composites included: what a tensor's methods call without autograd, and derivatives compute with. */
import { withComposites } from './composite/index.js'
import { nameOperations } from './heap/storage.js'
import * as raw from './raw/index.js'
import { inPlaceOf } from './raw/inplace.js'
import * as neural from './raw/neural/index.js'

const { nllLossBackward: _nll, sumToShape: _sum, ...primitives } = raw

nameOperations([...Object.keys(primitives), ...Object.keys(neural)])

export const operations = withComposites({ ...primitives, ...neural }, inPlaceOf)
