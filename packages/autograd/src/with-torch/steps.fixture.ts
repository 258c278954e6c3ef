/** Steps of random programs by kind: each draws its arguments and says the shapes of its results, or does nothing where no tensor fits. */
import { anyDim, type Builder, broadcast, full, numel, type Shape, same } from './builder.fixture.js'

const SAME = [
  ...[
    'neg',
    'sin',
    'cos',
    'tanh',
    'sigmoid',
    'relu',
    'abs',
    'square',
    'silu',
    'softplus',
    'exp',
    'clone',
    'contiguous',
    'leakyRelu',
    'elu',
  ],
  ...['logSigmoid', 'erf', 'sign', 'gelu', 'atan', 'expm1'],
]
const BINARY = ['add', 'sub', 'mul', 'mul', 'maximum', 'minimum', 'where', 'atan2', 'addcmul', 'lerp']

export const COMPUTE: Readonly<Record<string, (b: Builder) => void>> = {
  same(b) {
    const x = b.pick()!
    b.step(b.of(SAME), [x], [], [b.shapes[x]!])
  },
  number(b) {
    const x = b.pick()!
    const [op, attrs] = b.of<[string, unknown[]]>([
      ['mulNumber', [b.real()]],
      ['addNumber', [b.real()]],
      ['pow', [b.of([0, 1, 2, 3])]],
      ['clamp', [0 - b.below(20) / 10, b.below(20) / 10]],
      ['to', [b.of(['float32', 'float64'])]],
    ])
    b.step(op, [x], attrs, [b.shapes[x]!])
  },
  binary(b) {
    const x = b.pick()!
    const y = b.pick((shape) => broadcast(b.shapes[x]!, shape) !== null)!
    b.step(b.of(BINARY), [x, y], [], [broadcast(b.shapes[x]!, b.shapes[y]!)!])
  },
  reduce(b) {
    const x = b.pick(full)
    if (x === null) return
    const shape = b.shapes[x]!
    const dim = anyDim(b, shape)
    const keep = b.chance(2)
    b.step(b.of(['sum', 'mean', 'prod', 'amax', 'logSumExp']), [x], [dim, keep], [keep ? shape.with(dim, 1) : shape.toSpliced(dim, 1)])
  },
  along(b) {
    const x = b.pick(full)
    if (x === null) return
    b.step(b.of(['softmax', 'cumsum', 'flip', 'logSoftmax', 'cumprod']), [x], [anyDim(b, b.shapes[x]!)], [b.shapes[x]!])
  },
  matmul(b) {
    const x = b.pick((shape) => shape.length === 2 && numel(shape) > 0)
    if (x === null) return
    const y = b.pick((shape) => shape.length === 2 && shape[0] === b.shapes[x]![1])
    if (y !== null) b.step('matmul', [x, y], [], [[b.shapes[x]![0]!, b.shapes[y]![1]!]])
  },
  cat(b) {
    const x = b.pick(full)
    if (x === null) return
    const shape = b.shapes[x]!
    const dim = anyDim(b, shape)
    const y = b.pick((other) => other.length === shape.length && same(other.with(dim, 0), shape.with(dim, 0)))!
    b.step('cat', [x, y], [dim], [shape.with(dim, shape[dim]! + b.shapes[y]![dim]!)])
  },
  stack(b) {
    const x = b.pick((shape) => shape.length < 4)!
    const y = b.pick((shape) => same(shape, b.shapes[x]!))!
    const dim = b.below(b.shapes[x]!.length + 1)
    b.step('stack', [x, y], [dim], [b.shapes[x]!.toSpliced(dim, 0, 2)])
  },
  look(b) {
    const x = b.pick(full)
    if (x === null) return
    const shape = b.shapes[x]!
    const dim = anyDim(b, shape)
    if (b.chance(2)) {
      const out = shape.with(dim, 1 + b.below(3))
      return b.step('gather', [x], [dim, out, b.index(numel(out), shape[dim]!)], [out])
    }
    const rows = 1 + b.below(4)
    b.step('indexSelect', [x], [dim, b.index(rows, shape[dim]!)], [shape.with(dim, rows)])
  },
  put: (b) => put(b, ''),
  mask(b) {
    const x = b.pick(full)
    if (x !== null) b.step('maskedFill', [x], [b.index(numel(b.shapes[x]!), 2), b.real()], [b.shapes[x]!])
  },
}

export function hasHookedView(b: Builder): boolean {
  return [...b.hooked].some((id) => b.views.has(id))
}

/** Writes by index, duplicates among them; `suffix` '_' for those in place. */
function put(b: Builder, suffix: '' | '_'): void {
  const x = b.pick(full)
  if (x === null || (suffix === '_' && hasHookedView(b))) return
  const shape = b.shapes[x]!
  const outs = suffix === '_' ? [] : [shape]
  const dim = anyDim(b, shape)
  switch (b.below(4)) {
    case 0: {
      const src = b.pick((other) => same(other, shape))!
      b.step(`${b.of(['scatter', 'scatterAdd'])}${suffix}`, [x, src], [dim, shape, b.index(numel(shape), shape[dim]!)], outs)
      return
    }
    case 1: {
      const src = b.pick((other) => other.length === shape.length && same(other.with(dim, 0), shape.with(dim, 0)))!
      b.step(`indexAdd${suffix}`, [x, src], [dim, b.index(b.shapes[src]![dim]!, shape[dim]!)], outs)
      return
    }
    case 2: {
      const rows = 1 + b.below(3)
      const src = b.pick((other) => broadcast(other, [rows, ...shape.slice(1)])?.length === shape.length && numel(other) > 0)
      if (src === null || !same(broadcast(b.shapes[src]!, [rows, ...shape.slice(1)])!, [rows, ...shape.slice(1)])) return
      b.step(`indexPut${suffix}`, [x, src], [b.index(rows, shape[0]!), b.chance(2)], outs)
      return
    }
    default:
      b.step(`indexFill${suffix}`, [x], [dim, b.index(1 + b.below(2), shape[dim]!), b.real()], outs)
  }
}

export const VIEWS: Readonly<Record<string, (b: Builder, x: number, shape: Shape) => void>> = {
  narrow(b, x, shape) {
    const dim = anyDim(b, shape)
    const start = b.below(shape[dim]!)
    const length = 1 + b.below(shape[dim]! - start)
    b.step('narrow', [x], [dim, start, length], [shape.with(dim, length)])
  },
  select(b, x, shape) {
    const dim = anyDim(b, shape)
    b.step('select', [x], [dim, b.below(shape[dim]!)], [shape.toSpliced(dim, 1)])
  },
  slice(b, x, shape) {
    const [dim, step] = [anyDim(b, shape), b.of([1, 2, 3])]
    const start = b.below(shape[dim]!)
    b.step('slice', [x], [dim, start, shape[dim], step], [shape.with(dim, Math.ceil((shape[dim]! - start) / step))])
  },
  transpose(b, x, shape) {
    const [i, j] = [anyDim(b, shape), anyDim(b, shape)]
    b.step('transpose', [x], [i, j], [shape.with(i, shape[j]!).with(j, shape[i]!)])
  },
  permute(b, x, shape) {
    const dims = shape.map((_, i) => (i + 1) % shape.length)
    b.step('permute', [x], [dims], [dims.map((d) => shape[d]!)])
  },
  expand(b, x, shape) {
    const extents = shape.map((n) => (n === 1 ? b.of([1, 2, 3]) : n))
    const out = b.chance(3) ? [2, ...extents] : extents
    b.step('expand', [x], [out], [out])
  },
  reshape(b, x, shape) {
    const n = numel(shape)
    const factor = b.of([1, 2, 3, n].filter((f) => n % f === 0))
    b.step(b.of(['reshape', 'view']), [x], [[factor, n / factor]], [[factor, n / factor]])
  },
  flatten: (b, x, shape) => b.step('flatten', [x], [], [[numel(shape)]]),
  unsqueeze(b, x, shape) {
    if (shape.length > 3) return
    const dim = b.below(shape.length + 1)
    b.step('unsqueeze', [x], [dim], [shape.toSpliced(dim, 0, 1)])
  },
  squeeze: (b, x, shape) => b.step('squeeze', [x], [], [shape.filter((n) => n !== 1)]),
  split(b, x, shape) {
    const dim = anyDim(b, shape)
    const extent = shape[dim]!
    const size = 1 + b.below(extent)
    const sizes = Array.from({ length: Math.ceil(extent / size) }, (_, i) => Math.min(size, extent - i * size))
    const shapes = sizes.map((n) => shape.with(dim, n))
    b.step('split', [x], [size, dim], shapes)
  },
  chunk(b, x, shape) {
    const dim = anyDim(b, shape)
    const size = Math.ceil(shape[dim]! / 2)
    const rest = shape[dim]! - size
    b.step('chunk', [x], [2, dim], rest > 0 ? [shape.with(dim, size), shape.with(dim, rest)] : [shape.with(dim, size)])
  },
  unbind(b, x, shape) {
    const dim = anyDim(b, shape)
    b.step('unbind', [x], [dim], Array(shape[dim]!).fill(shape.toSpliced(dim, 1)))
  },
  diagonal(b, x, shape) {
    if (shape.length < 2) return
    b.step('diagonal', [x], [0, 0, 1], [[...shape.slice(2), Math.min(shape[0]!, shape[1]!)]])
  },
  detach: (b, x, shape) => b.step('detach', [x], [], [shape]),
  chain(b, x, shape) {
    if (b.chance(8)) b.step('chain', [x], [98 + b.below(5)], [shape])
  },
}

export const WRITES: Readonly<Record<string, (b: Builder, x: number, shape: Shape) => void>> = {
  alone(b, x) {
    const op = b.of([
      'sin_',
      'tanh_',
      'sigmoid_',
      'relu_',
      'neg_',
      'zero_',
      'exp_',
      'abs_',
      'square_',
      'leakyRelu_',
      'elu_',
      'cos_',
      'expm1_',
    ])
    b.step(op, [x], [], [])
  },
  number(b, x) {
    const [op, attrs] = b.of<[string, unknown[]]>([
      ['mulNumber_', [b.real()]],
      ['addNumber_', [b.real()]],
      ['fill_', [b.real()]],
      ['pow_', [b.of([1, 2, 3])]],
      ['clamp_', [0 - b.below(20) / 10, b.below(20) / 10]],
    ])
    b.step(op, [x], attrs, [])
  },
  binary(b, x, shape) {
    const y = b.pick((other) => {
      const both = broadcast(shape, other)
      return both !== null && (same(both, shape) || other.length === 0)
    })!
    b.step(b.of(['add_', 'sub_', 'mul_', 'copy_', 'copy_', 'addcmul_', 'lerp_', 'atan2_']), [x, y], [], [])
  },
  along(b, x, shape) {
    if (full(shape)) b.step('cumsum_', [x], [anyDim(b, shape)], [])
  },
  triangle(b, x, shape) {
    if (shape.length >= 2) b.step(b.of(['tril_', 'triu_']), [x], [0], [])
  },
  put: (b) => put(b, '_'),
  mask(b, x, shape) {
    if (full(shape)) b.step('maskedFill_', [x], [b.index(numel(shape), 2), b.real()], [])
  },
}

/** A write into its base gives a view another history, and its hooks stay with the old one. */
function hook(b: Builder, x: number, kinds: readonly string[]): void {
  if (b.views.has(x) && b.steps.some(({ op }) => op.endsWith('_'))) return
  b.step('hook', [x], [b.of(kinds)], [], true)
}

export const FLAGS: Readonly<Record<string, (b: Builder, x: number, shape: Shape) => void>> = {
  hook: (b, x) => hook(b, x, ['look', 'look', 'double', 'double', 'raise']),
  hooks: (b, x) => hook(b, x, ['look', 'double']),
  retainGrad: (b, x) => b.step('retainGrad', [x], [], [], true),
  retainsGrad: (b, x) => b.step('retainGrad', [x], [], [], true),
  requiresGrad(b, x) {
    if (!b.views.has(x) && !b.viewed.has(x) && !b.hooked.has(x)) b.step('requiresGrad_', [x], [!b.chance(3)], [], true)
  },
  detach(b, x) {
    if (!b.viewed.has(x) && !b.hooked.has(x) && !b.handedOn.has(x)) b.step('detach_', [x], [], [], true)
  },
  clearGrad: (b, x) => b.step('clearGrad', [x], [], [], true),
  readGrad: (b, x, shape) => b.step('readGrad', [x], [], [shape], true),
}

/** The functions of both sides: their arguments, what their results look like. */
export const CUSTOM: Readonly<Record<string, (b: Builder) => void>> = {
  one(b) {
    const x = b.pick()!
    const shape = b.shapes[x]!
    b.step(`custom:${b.of(['Square', 'Tanh', 'Same', 'Same', 'Twice', 'Dirty', 'Nothing', 'Reshaped', 'Wrong'])}`, [x], [], [shape])
  },
  part(b) {
    const x = b.pick(full)
    if (x === null) return
    b.step(`custom:${b.of(['Part', 'Part', 'FreshPart'])}`, [x], [], [b.shapes[x]!.with(0, 1)])
  },
  pair(b) {
    const x = b.pick()!
    const y = b.pick((shape) => same(shape, b.shapes[x]!))!
    b.step('custom:Both', [x, y], [], [b.shapes[x]!, b.shapes[x]!])
  },
  passes(b) {
    const x = b.pick()!
    const y = b.pick((shape) => same(shape, b.shapes[x]!))!
    b.step('custom:Passes', [x, y], [], [b.shapes[x]!, b.shapes[x]!])
  },
  marked(b) {
    const x = b.pick(full)
    if (x !== null) b.step('custom:Marked', [x], [], [b.shapes[x]!])
  },
  checkpoint(b) {
    const x = b.pick()!
    const y = b.pick((shape) => same(shape, b.shapes[x]!))!
    b.step(`checkpoint:${b.of(['smooth', 'writes', 'views', 'product'])}`, [x, y], [], [b.shapes[x]!])
  },
}

/** PyTorch 1.13 runs hooks of leaves only where their gradient is accumulated. */
function mayBeAsked(b: Builder, ids: readonly number[]): boolean {
  return !ids.some((id) => b.quietViews.has(id) || b.hooked.has(id))
}

export const PASSES: Readonly<Record<string, (b: Builder) => void>> = {
  backward(b) {
    const x = b.pick()!
    const inputs = b.chance(5) ? [b.pick()!] : []
    if (!mayBeAsked(b, [x, ...inputs])) return
    const attrs = { gradient: numel(b.shapes[x]!) !== 1 && !b.chance(10), retain: !b.chance(3), create: b.chance(5) }
    b.step('backward', [x, ...inputs], [attrs], [], true)
  },
  grad(b) {
    const x = b.pick()!
    const inputs = Array.from({ length: 1 + b.below(2) }, () => b.below(b.shapes.length))
    if (!mayBeAsked(b, [x, ...inputs])) return
    const attrs = { gradient: numel(b.shapes[x]!) !== 1, retain: !b.chance(3), create: !b.chance(3), unused: !b.chance(8) }
    b.step(
      'grad',
      [x, ...inputs],
      [attrs],
      inputs.map((id) => b.shapes[id]!),
      true,
    )
  },
  loss(b) {
    loss(b, 2)
    const root = b.shapes.length - 1
    if (b.chance(2)) return b.step('backward', [root], [{ gradient: false, retain: !b.chance(3), create: b.chance(5) }], [], true)
    const inputs = Array.from({ length: 1 + b.below(3) }, () => b.below(root)).filter((id) => mayBeAsked(b, [id]))
    if (inputs.length === 0) return
    const attrs = { gradient: false, retain: !b.chance(3), create: !b.chance(3), unused: true }
    b.step(
      'grad',
      [root, ...inputs],
      [attrs],
      inputs.map((id) => b.shapes[id]!),
      true,
    )
  },
}

/** The weighted sum of some tensors: about one of `oneIn`. */
export function loss(b: Builder, oneIn: number): void {
  const chosen = b.shapes.map((_, id) => id).filter(() => b.chance(oneIn))
  b.step('loss', chosen.length > 0 ? chosen : [b.pick()!], [], [[]], true)
}
