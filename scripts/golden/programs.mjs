/**
 * Random programs for packages/autograd/golden/programs.json: fast-check draws them, `programs.py` lets PyTorch differentiate
 * them. A program is {leaves: [{shape, data}], steps: [[op, arguments, attributes]], …}: arguments are places among the leaves and the results
 * of earlier steps. Its value is the sum of everything that nothing else used, weighted.
 *
 *     node scripts/golden/programs.mjs [--count 600] [--seed 20] [--out FILE]      (needs PyTorch ≥ 1.13 under /usr/bin/python3)
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import fc from 'fast-check'

const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '600' },
    seed: { type: 'string', default: '20' },
    out: { type: 'string', default: fileURLToPath(new URL('../../packages/autograd/golden/programs.json', import.meta.url)) },
  },
})

const LEAF_SHAPES = [[2, 3], [3], [1, 3], [2, 1], [], [2, 3, 2], [3, 3], [4], [3, 2], [2, 2, 3], [1, 2, 4, 4], [0, 3]]
/** Some are dropped (see programs.py): draw more than are asked for. */
const SURPLUS = 1.6
const numel = (shape) => shape.reduce((product, extent) => product * extent, 1)
const same = (a, b) => a.length === b.length && a.every((n, i) => n === b[i])

function broadcast(a, b) {
  const out = []
  for (let i = 1; i <= Math.max(a.length, b.length); i++) {
    const [x, y] = [a.at(-i) ?? 1, b.at(-i) ?? 1]
    if (x !== y && x !== 1 && y !== 1) return null
    out.unshift(x === 1 ? y : x)
  }
  return out
}

/** A stream of decisions: what fast-check drew, then zeros (so that it can shrink). */
class Decisions {
  constructor(draws) {
    this.draws = draws
    this.at = 0
  }
  below(n) {
    return (this.draws[this.at++] ?? 0) % n
  }
  of(list) {
    return list[this.below(list.length)]
  }
  real() {
    return (this.below(4001) - 2000) / 1000
  }
  flip() {
    return this.below(2) === 1
  }
}

class Builder {
  constructor(decisions) {
    this.d = decisions
    this.leaves = []
    this.shapes = []
    this.steps = []
  }
  leaf(shape) {
    this.leaves.push({ shape, data: Array.from({ length: numel(shape) }, () => this.d.real()) })
    this.shapes.push(shape)
  }
  /** A place whose shape fits, later ones likelier; null if there is none. */
  pick(fits = () => true) {
    const places = this.shapes.map((_, i) => i).filter((i) => fits(this.shapes[i]))
    if (places.length === 0) return null
    return Math.max(this.d.of(places), this.d.of(places))
  }
  step(op, args, attrs, shape) {
    this.steps.push([op, args, attrs])
    this.shapes.push(shape)
  }
}

const ranked = (n) => (shape) => shape.length === n
const atLeast = (n) => (shape) => shape.length >= n && numel(shape) > 0
const anyDim = (b, shape) => b.d.below(shape.length) - (b.d.flip() ? shape.length : 0)
const positive = (dim, shape) => (dim < 0 ? dim + shape.length : dim)

const same1 =
  (attrs = () => []) =>
  (op) =>
  (b) => {
    const x = b.pick()
    b.step(op, [x], attrs(b), b.shapes[x])
  }
const broadcasting = (op) => (b) => {
  const x = b.pick()
  const y = b.pick((shape) => broadcast(b.shapes[x], shape) !== null)
  b.step(op, [x, y], [], broadcast(b.shapes[x], b.shapes[y]))
}
const reducing =
  (fits, all = true) =>
  (op) =>
  (b) => {
    const x = b.pick(fits)
    if (x === null) return
    const shape = b.shapes[x]
    if (shape.length === 0 || (all && b.d.below(4) === 0)) return all && b.step(op, [x], [null, false], [])
    const [dim, keep] = [anyDim(b, shape), b.d.flip()]
    b.step(op, [x], [dim, keep], keep ? shape.with(positive(dim, shape), 1) : shape.toSpliced(positive(dim, shape), 1))
  }
const alongDim =
  (fits = atLeast(1)) =>
  (op) =>
  (b) => {
    const x = b.pick(fits)
    if (x !== null) b.step(op, [x], [anyDim(b, b.shapes[x])], b.shapes[x])
  }
/** PyTorch refuses some programs with in-place writes, as it should; those are dropped. */
const inPlace = (binary) => (op) => (b) => {
  const x = b.pick((shape) => b.shapes.indexOf(shape) >= b.leaves.length)
  if (x === null) return
  if (!binary) return b.step(op, [x], [], b.shapes[x])
  const y = b.pick((shape) => broadcast(b.shapes[x], shape) !== null && same(broadcast(b.shapes[x], shape), b.shapes[x]))
  b.step(op, [x, y], [], b.shapes[x])
}

const index = (b, length, extent) => Array.from({ length }, () => b.d.below(extent))

/** Each draws its arguments and says the shape of its result, or does nothing where no value fits. */
const OPS = {
  ...Object.fromEntries(
    [
      'neg',
      'sin',
      'cos',
      'tanh',
      'sigmoid',
      'relu',
      'abs',
      'gelu',
      'silu',
      'softplus',
      'square',
      'erf',
      'floor',
      'clone',
      'contiguous',
      'safeExp',
      'safeLog',
      'safeSqrt',
      'safeReciprocal',
      'safeRsqrt',
      'logSigmoid',
    ].map((op) => [op, same1()(op)]),
  ),
  leakyRelu: same1((b) => [b.d.of([0.01, 0.2])])('leakyRelu'),
  elu: same1()('elu'),
  pow: same1((b) => [b.d.of([0, 1, 2, 3])])('pow'),
  clamp: same1((b) => [-b.d.below(20) / 10, b.d.below(20) / 10])('clamp'),
  mulNumber: same1((b) => [b.d.real()])('mulNumber'),
  rsubNumber: same1((b) => [b.d.real()])('rsubNumber'),
  ...Object.fromEntries(['add', 'sub', 'mul', 'safeDiv', 'maximum', 'minimum', 'where'].map((op) => [op, broadcasting(op)])),
  ...Object.fromEntries(['sum', 'mean', 'logSumExp', 'prod'].map((op) => [op, reducing(atLeast(0), op !== 'logSumExp')(op)])),
  amax: reducing(atLeast(1))('amax'),
  amin: reducing(atLeast(1))('amin'),
  max: reducing(atLeast(1), false)('max'),
  var: reducing((shape) => atLeast(1)(shape) && shape.every((n) => n > 1))('var'),
  safeNorm: reducing(atLeast(1))('safeNorm'),
  ...Object.fromEntries(['softmax', 'logSoftmax', 'cumsum', 'flip'].map((op) => [op, alongDim()(op)])),
  transpose(b) {
    const x = b.pick(atLeast(2))
    if (x === null) return
    const shape = b.shapes[x]
    const [i, j] = [b.d.below(shape.length), b.d.below(shape.length)]
    b.step('transpose', [x], [i, j], shape.with(i, shape[j]).with(j, shape[i]))
  },
  reshape(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const n = numel(b.shapes[x])
    const factor = b.d.of([1, 2, 3, 4, 6, n].filter((f) => n % f === 0))
    b.step('reshape', [x], [[factor, n / factor]], [factor, n / factor])
  },
  permute(b) {
    const x = b.pick(ranked(3))
    if (x === null) return
    const dims = b.d.of([
      [2, 0, 1],
      [1, 2, 0],
      [0, 2, 1],
    ])
    b.step(
      'permute',
      [x],
      [dims],
      dims.map((d) => b.shapes[x][d]),
    )
  },
  expand(b) {
    const x = b.pick((shape) => shape.includes(1))
    if (x === null) return
    const shape = b.shapes[x].map((n) => (n === 1 ? b.d.of([1, 2, 3]) : n))
    b.step('expand', [x], [shape], shape)
  },
  unsqueeze(b) {
    const x = b.pick((shape) => shape.length < 4)
    if (x === null) return
    const dim = b.d.below(b.shapes[x].length + 1)
    b.step('unsqueeze', [x], [dim], b.shapes[x].toSpliced(dim, 0, 1))
  },
  squeeze(b) {
    const x = b.pick()
    b.step(
      'squeeze',
      [x],
      [],
      b.shapes[x].filter((n) => n !== 1),
    )
  },
  narrow(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const shape = b.shapes[x]
    const dim = b.d.below(shape.length)
    const start = b.d.below(shape[dim])
    const length = 1 + b.d.below(shape[dim] - start)
    b.step('narrow', [x], [dim, start, length], shape.with(dim, length))
  },
  slice(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const shape = b.shapes[x]
    const [dim, step] = [b.d.below(shape.length), b.d.of([1, 2, 3])]
    const start = b.d.below(shape[dim])
    b.step('slice', [x], [dim, start, shape[dim], step], shape.with(dim, Math.ceil((shape[dim] - start) / step)))
  },
  select(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const dim = b.d.below(b.shapes[x].length)
    b.step('select', [x], [dim, b.d.below(b.shapes[x][dim])], b.shapes[x].toSpliced(dim, 1))
  },
  cat(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const shape = b.shapes[x]
    const dim = b.d.below(shape.length)
    const y = b.pick((other) => other.length === shape.length && same(other.with(dim, 0), shape.with(dim, 0)))
    b.step('cat', [x, y, x], [dim], shape.with(dim, 2 * shape[dim] + b.shapes[y][dim]))
  },
  stack(b) {
    const x = b.pick((shape) => shape.length < 4)
    if (x === null) return
    const y = b.pick((shape) => same(shape, b.shapes[x]))
    const dim = b.d.below(b.shapes[x].length + 1)
    b.step('stack', [x, y], [dim], b.shapes[x].toSpliced(dim, 0, 2))
  },
  split(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const shape = b.shapes[x]
    const dim = b.d.below(shape.length)
    const size = 1 + b.d.below(shape[dim])
    b.step('splitFirst', [x], [size, dim], shape.with(dim, size))
  },
  repeat(b) {
    const x = b.pick((shape) => atLeast(1)(shape) && numel(shape) <= 24)
    if (x === null) return
    const times = b.shapes[x].map(() => b.d.of([1, 2]))
    b.step(
      'repeat',
      [x],
      [times],
      b.shapes[x].map((n, i) => n * times[i]),
    )
  },
  pad(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const [left, right] = [b.d.below(3), b.d.below(3)]
    b.step('pad', [x], [[left, right]], b.shapes[x].with(-1, b.shapes[x].at(-1) + left + right))
  },
  tril: (b) => triangle('tril', b),
  triu: (b) => triangle('triu', b),
  gather(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const shape = b.shapes[x]
    const dim = b.d.below(shape.length)
    const out = shape.with(dim, 1 + b.d.below(3))
    b.step('gather', [x], [dim, out, index(b, numel(out), shape[dim])], out)
  },
  scatterAdd(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const shape = b.shapes[x]
    const y = b.pick((other) => same(other, shape))
    const dim = b.d.below(shape.length)
    b.step('scatterAdd', [x, y], [dim, shape, index(b, numel(shape), shape[dim])], shape)
  },
  indexSelect(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const dim = b.d.below(b.shapes[x].length)
    const rows = 1 + b.d.below(4)
    b.step('indexSelect', [x], [dim, index(b, rows, b.shapes[x][dim])], b.shapes[x].with(dim, rows))
  },
  maskedFill(b) {
    const x = b.pick(atLeast(1))
    if (x !== null) b.step('maskedFill', [x], [index(b, numel(b.shapes[x]), 2), b.d.real()], b.shapes[x])
  },
  embedding(b) {
    const x = b.pick((shape) => shape.length === 2 && numel(shape) > 0)
    if (x === null) return
    const shape = [2, 1 + b.d.below(2)]
    b.step('embedding', [x], [shape, index(b, numel(shape), b.shapes[x][0])], [...shape, b.shapes[x][1]])
  },
  matmul(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const k = b.shapes[x].at(-1)
    const y = b.pick((shape) => shape.length >= 1 && shape.length <= 2 && (shape.at(-2) ?? shape[0]) === k && numel(shape) > 0)
    if (y === null) return
    const rows = b.shapes[x].slice(0, -1)
    b.step('matmul', [x, y], [], b.shapes[y].length === 1 ? rows : [...rows, b.shapes[y][1]])
  },
  /** x · yᵀ over two or three dimensions. */
  matmulTransposed(b) {
    const x = b.pick((shape) => atLeast(2)(shape) && shape.length <= 3)
    if (x === null) return
    const a = b.shapes[x]
    const y = b.pick((shape) => shape.length === a.length && shape.at(-1) === a.at(-1) && (a.length === 2 || shape[0] === a[0]))
    if (y !== null) b.step('matmulTransposed', [x, y], [], [...a.slice(0, -1), b.shapes[y].at(-2)])
  },
  einsum(b) {
    const x = b.pick((shape) => ranked(2)(shape) && numel(shape) > 0)
    if (x === null) return
    const y = b.pick((shape) => ranked(2)(shape) && shape[0] === b.shapes[x][0] && numel(shape) > 0)
    b.step('einsum', [x, y], ['ij,ik->kj'], [b.shapes[y][1], b.shapes[x][1]])
  },
  linear(b) {
    const x = b.pick(atLeast(1))
    if (x === null) return
    const w = b.pick((shape) => ranked(2)(shape) && numel(shape) > 0 && shape[1] === b.shapes[x].at(-1))
    if (w === null) return
    const bias = b.pick((shape) => ranked(1)(shape) && shape[0] === b.shapes[w][0])
    b.step('linear', bias === null ? [x, w] : [x, w, bias], [], [...b.shapes[x].slice(0, -1), b.shapes[w][0]])
  },
  layerNorm(b) {
    const x = b.pick((shape) => atLeast(1)(shape) && shape.at(-1) > 1)
    if (x === null) return
    const w = b.pick((shape) => same(shape, b.shapes[x].slice(-1)))
    b.step('layerNorm', w === null ? [x] : [x, w, w], [[b.shapes[x].at(-1)]], b.shapes[x])
  },
  conv2d(b) {
    const x = b.pick((shape) => ranked(4)(shape) && numel(shape) > 0 && shape[2] > 1 && shape[3] > 1)
    if (x === null) return
    const [n, _c, h, w] = b.shapes[x]
    b.step('conv2dSelf', [x], [], [n, n, h - 1, w - 1])
  },
  maxPool2d: (b) => pool('maxPool2d', b),
  avgPool2d: (b) => pool('avgPool2d', b),
  add_: inPlace(true)('add_'),
  mul_: inPlace(true)('mul_'),
  tanh_: inPlace(false)('tanh_'),
}

function triangle(op, b) {
  const x = b.pick(atLeast(2))
  if (x !== null) b.step(op, [x], [b.d.below(3) - 1], b.shapes[x])
}

function pool(op, b) {
  const x = b.pick((shape) => ranked(4)(shape) && numel(shape) > 0 && shape[2] > 1 && shape[3] > 1)
  if (x === null) return
  const [n, c, h, w] = b.shapes[x]
  b.step(op, [x], [2, 1], [n, c, h - 1, w - 1])
}

const NAMES = Object.keys(OPS)

const program = fc.array(fc.nat({ max: 2 ** 20 }), { minLength: 120, maxLength: 400 }).map((draws) => {
  const b = new Builder(new Decisions(draws))
  for (let n = 2 + b.d.below(3); n > 0; n--) b.leaf(b.d.of(LEAF_SHAPES))
  for (let n = 3 + b.d.below(8); n > 0; n--) OPS[b.d.of(NAMES)](b)
  return { leaves: b.leaves, steps: b.steps }
})

const count = Number(options.count)
const drawn = fc.sample(program, { seed: Number(options.seed), numRuns: Math.ceil(count * SURPLUS) })
const script = fileURLToPath(new URL('./programs.py', import.meta.url))
const { status, stdout, stderr } = spawnSync('/usr/bin/python3', [script, String(count)], {
  input: JSON.stringify(drawn),
  maxBuffer: 2 ** 30,
  encoding: 'utf8',
})
if (status !== 0) throw new Error(`programs.py failed: ${stderr}`)
writeFileSync(options.out, stdout)
console.log(stderr.trim())
