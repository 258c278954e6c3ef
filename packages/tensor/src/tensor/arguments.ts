/**
 * The check of arguments at the door: whoever calls past the types, from JavaScript say, learns what the operation takes and what it got, instead
 * of which property was read of undefined. It stands between tensors' methods and the public functions above and the operations below, which call
 * each other without it. Only kinds are checked here; which values and shapes fit is the operation's own affair.
 */

import { PostgradError } from '@postgrad/base'
import { inSpan, tracing } from '@postgrad/base/internal'
import { CPU, hasDevices } from '../heap/memory.js'
import type { DeviceLike, Ops } from '../ops/ops.js'
import type { DerivativeOps } from '../ops/ops-derivative.js'
import { IN_PLACE_FORMS } from '../ops/ops-in-place.js'
import type { NeuralOps } from '../ops/ops-neural.js'
import { invalidArgument } from '../values/errors.js'
import { argumentText, checkOptions, hasOnly, isListOf } from './check-argument.js'
import { isTensor, Tensor } from './tensor.js'

type Kind =
  | 'tensor'
  | 'operand'
  | 'filling'
  | 'number'
  | 'number or boolean'
  | 'boolean'
  | 'string'
  | 'numbers'
  | 'dims'
  | 'tensors'
  | 'options'
  | 'named or options'
  | 'list'
  | 'number or list'
  | 'target'
/** '?' may be left out, '??' may be null as well. */
type Slot = Kind | `${Kind}?` | `${Kind}??`

type KindOf<P> = [P] extends [Tensor]
  ? 'tensor'
  : [P] extends [number]
    ? 'number'
    : [P] extends [boolean]
      ? 'boolean'
      : [P] extends [number | Tensor]
        ? 'operand'
        : [P] extends [number | boolean]
          ? 'number or boolean'
          : [P] extends [number | boolean | Tensor]
            ? 'filling'
            : [P] extends [string]
              ? 'string'
              : [P] extends [string | DeviceLike | Tensor]
                ? 'target'
                : [P] extends [readonly number[]]
                  ? 'numbers'
                  : [P] extends [number | readonly number[]]
                    ? 'dims'
                    : [P] extends [readonly Tensor[]]
                      ? 'tensors'
                      : [P] extends [readonly unknown[]]
                        ? 'list'
                        : [P] extends [number | readonly unknown[]]
                          ? 'number or list'
                          : [P] extends [object]
                            ? 'options'
                            : 'named or options'
type SlotOf<P> = null extends P
  ? `${KindOf<Exclude<P, null | undefined>>}??`
  : undefined extends P
    ? `${KindOf<Exclude<P, undefined>>}?`
    : KindOf<P>
type SlotsOf<F> = F extends (...args: infer P) => unknown ? Required<{ readonly [I in keyof P]: SlotOf<P[I]> }> : never

/** What only operations call is not checked; einsum has any number of arguments and checks them itself. */
type Unchecked = keyof DerivativeOps<Tensor> | Exclude<keyof NeuralOps<Tensor>, 'linear'> | InPlaceForm
type InPlaceForm = `${(typeof IN_PLACE_FORMS)[number]}_`
type Checked = Exclude<keyof Ops<Tensor>, Unchecked | 'einsum' | 'embeddingBackward' | 'constantPad' | 'everyNth' | 'reverseCumsum'>

/** Of an overloaded signature the types see only one half. */
type Extreme = readonly ['tensor', 'number?', 'boolean?']

const each = <const N extends string, const S extends readonly Slot[]>(slots: S, names: readonly N[]): Readonly<Record<N, S>> =>
  Object.fromEntries(names.map((name) => [name, slots])) as unknown as Readonly<Record<N, S>>

/** An operation without a line, or with one that is not its signature's, does not compile. */
const SLOTS: { readonly [K in Checked]: K extends 'max' | 'min' ? Extreme : SlotsOf<Ops<Tensor>[K]> } = {
  ...each(['tensor'], ['neg', 'exp', 'log', 'sqrt', 'sin', 'cos', 'tanh', 'sigmoid', 'relu', 'abs', 'sign', 'clone', 'contiguous']),
  ...each(['tensor'], ['floor', 'ceil', 'round', 'trunc', 'reciprocal', 'rsqrt', 'square', 'log1p', 'expm1', 'log2', 'log10', 'exp2']),
  ...each(['tensor'], ['tan', 'sinh', 'cosh', 'asin', 'acos', 'atan', 'erf', 'silu', 'nonzero', 'zero_', 'ravel', 'trace', 'relu6']),
  ...each(['tensor'], ['logSigmoid', 'mish', 'softsign', 'tanhshrink', 'isNaN', 'isInf', 'isFinite', 'logicalNot', 'bitwiseNot']),
  ...each(['tensor', 'target', 'string?'], ['to']),
  ...each(['tensor', 'number??', 'number??'], ['clamp']),
  ...each(['tensor', 'number?'], ['leakyRelu', 'elu', 'oneHot', 'unbind', 'diag', 'tril', 'triu']),
  ...each(['tensor', 'options?'], ['gelu', 'softplus', 'nanToNum']),
  ...each(['operand', 'operand'], ['add', 'sub', 'mul', 'maximum', 'minimum', 'eq', 'ne', 'lt', 'le', 'gt', 'ge', 'pow', 'floorDivide']),
  ...each(['operand', 'operand'], ['remainder', 'fmod', 'bitwiseAnd', 'bitwiseOr', 'bitwiseXor']),
  ...each(['operand', 'operand', 'options?'], ['div']),
  ...each(['tensor', 'tensor'], ['atan2', 'matmul', 'bmm', 'copy_', 'viewAs', 'expandAs', 'take', 'maskedSelect', 'dot', 'outer', 'mv']),
  ...each(['tensor', 'tensor'], ['mm', 'logicalAnd', 'logicalOr', 'logicalXor', 'equal']),
  ...each(['tensor', 'dims?', 'boolean?', 'options?'], ['sum', 'mean', 'var', 'std', 'varMean']),
  ...each(['tensor', 'dims?', 'boolean?'], ['amax', 'amin', 'logSumExp', 'any', 'all']),
  ...each(['tensor', 'number?', 'boolean?'], ['argmax', 'prod', 'argmin', 'max', 'min']),
  ...each(['tensor', 'number?', 'dims?', 'boolean?'], ['norm']),
  ...each(['tensor', 'number'], ['cumsum', 'cumprod', 'unsqueeze', 'softmax', 'logSoftmax', 'adaptiveAvgPool1d']),
  ...each(['tensor', 'number or boolean'], ['fill_']),
  ...each(['tensor', 'number?', 'options?'], ['argsort', 'sort', 'dropout']),
  ...each(['tensor', 'numbers'], ['view', 'reshape', 'permute', 'expand', 'broadcastTo', 'repeat', 'tile']),
  ...each(['tensor', 'number', 'number'], ['transpose', 'select', 'swapaxes']),
  ...each(['tensor', 'dims?'], ['squeeze', 'countNonzero']),
  ...each(['tensor', 'number', 'number', 'number'], ['narrow']),
  ...each(['tensor', 'number?', 'number?', 'number?'], ['diagonal', 'diagEmbed']),
  ...each(['tensors', 'number?'], ['cat', 'stack']),
  ...each(['tensor', 'operand', 'operand'], ['where']),
  ...each(['tensor', 'number', 'tensor'], ['indexSelect', 'gather']),
  ...each(['tensor', 'number', 'tensor', 'tensor'], ['indexAdd', 'scatterAdd']),
  ...each(['tensor', 'number', 'tensor', 'filling'], ['scatter', 'indexFill']),
  ...each(['tensor', 'tensor', 'tensor??'], ['linear']),
  ...each(['tensor', 'operand', 'number?'], ['add_', 'sub_', 'repeatInterleave']),
  ...each(['tensor', 'operand'], ['mul_', 'div_']),
  ...each(['tensor', 'number?', 'number?'], ['flatten', 'hardtanh']),
  ...each(['tensor', 'dims', 'number?'], ['split', 'tensorSplit']),
  ...each(['tensor', 'number', 'number?'], ['chunk']),
  ...each(['tensor', 'number', 'number??', 'number??', 'number?'], ['slice']),
  ...each(['tensor', 'number', 'numbers'], ['unflatten']),
  ...each(['tensor', 'dims', 'dims'], ['movedim']),
  ...each(['tensors'], ['broadcastTensors', 'hstack', 'vstack']),
  ...each(['tensor', 'dims', 'dims?'], ['roll']),
  ...each(['tensor', 'dims'], ['flip', 'adaptiveAvgPool2d']),
  ...each(['tensor', 'numbers', 'options?'], ['pad']),
  ...each(['tensors', 'string?'], ['meshgrid']),
  ...each(['tensor', 'list'], ['index']),
  ...each(['tensor', 'list', 'filling', 'boolean?'], ['indexPut', 'indexPut_']),
  ...each(['tensor', 'tensor', 'number?'], ['takeAlongDim']),
  ...each(['tensor', 'tensor', 'operand'], ['lerp']),
  ...each(['tensor', 'tensor', 'filling'], ['maskedFill']),
  ...each(['tensor', 'tensor', 'tensor', 'options?'], ['addmm', 'baddbmm', 'addcmul', 'addcdiv', 'gaussianNllLoss']),
  ...each(['tensor', 'tensor', 'tensor', 'options?'], ['scaledDotProductAttention']),
  ...each(['tensor', 'tensor', 'number or list?'], ['tensordot']),
  ...each(['tensor', 'tensor', 'options?'], ['cosineSimilarity', 'pairwiseDistance', 'isclose', 'allclose', 'embedding', 'embeddingBag']),
  ...each(['tensor', 'number', 'number?', 'options?'], ['topk']),
  ...each(['tensor', 'tensor', 'tensor??', 'options?'], ['conv1d', 'conv2d', 'convTranspose1d', 'convTranspose2d']),
  ...each(['tensor', 'tensor', 'named or options?'], ['mseLoss', 'l1Loss', 'smoothL1Loss', 'huberLoss', 'bceLoss', 'bceWithLogits']),
  ...each(['tensor', 'tensor', 'named or options?'], ['klDiv', 'nllLoss', 'crossEntropy']),
  ...each(['tensor', 'number', 'options?'], ['maxPool1d', 'avgPool1d']),
  ...each(['tensor', 'dims', 'options?'], ['maxPool2d', 'maxPool2dWithIndices', 'avgPool2d']),
  ...each(['tensor', 'dims', 'tensor??', 'tensor??', 'options?'], ['layerNorm']),
  ...each(['tensor', 'tensor??', 'tensor??', 'tensor??', 'tensor??', 'options?'], ['batchNorm']),
  ...each(['tensor', 'number', 'tensor??', 'tensor??', 'options?'], ['groupNorm']),
  ...each(['tensor', 'tensor??', 'tensor??', 'options?'], ['instanceNorm']),
}

/** The names of the options of an operation that takes some. */
type NamesOf<P> = P extends readonly unknown[] | Tensor | DeviceLike | string | number | boolean | null | undefined
  ? never
  : P extends object
    ? keyof P & string
    : never
type OptionNames<F> = F extends (...args: infer P) => unknown ? NamesOf<P[number]> : never
type WithOptions = { [K in Checked]: [OptionNames<Ops<Tensor>[K]>] extends [never] ? never : K }[Checked]
type OptionsOf = { readonly [K in WithOptions]: Readonly<Record<OptionNames<Ops<Tensor>[K]>, true>> }

const some = <const N extends string>(...names: readonly N[]): Readonly<Record<N, true>> =>
  Object.fromEntries(names.map((name) => [name, true])) as Readonly<Record<N, true>>
const all = <const K extends string, const V>(value: V, keys: readonly K[]): Readonly<Record<K, V>> =>
  Object.fromEntries(keys.map((key) => [key, value])) as Readonly<Record<K, V>>

/** An operation with options without a line, or a line that lacks one of them, does not compile. */
const OPTIONS: OptionsOf = {
  gelu: some('approximate'),
  softplus: some('beta', 'threshold'),
  nanToNum: some('nan', 'posinf', 'neginf'),
  div: some('roundingMode'),
  ...all(some('dtype'), ['sum', 'mean']),
  ...all(some('correction'), ['var', 'std', 'varMean']),
  ...all(some('descending'), ['argsort', 'sort']),
  topk: some('largest'),
  dropout: some('training', 'generator'),
  pad: some('mode', 'value'),
  ...all(some('beta', 'alpha'), ['addmm', 'baddbmm']),
  ...all(some('value'), ['addcmul', 'addcdiv']),
  ...all(some('rtol', 'atol', 'equalNan'), ['isclose', 'allclose']),
  cosineSimilarity: some('dim', 'eps'),
  pairwiseDistance: some('p', 'eps', 'keepdim'),
  embedding: some('paddingIdx', 'sparse'),
  embeddingBag: some('mode', 'offsets', 'perSampleWeights', 'includeLastOffset', 'paddingIdx', 'sparse'),
  ...all(some('stride', 'padding', 'dilation', 'groups'), ['conv1d', 'conv2d']),
  ...all(some('stride', 'padding', 'outputPadding', 'dilation', 'groups'), ['convTranspose1d', 'convTranspose2d']),
  ...all(some('reduction'), ['mseLoss', 'l1Loss']),
  smoothL1Loss: some('reduction', 'beta'),
  huberLoss: some('reduction', 'delta'),
  bceLoss: some('reduction', 'weight'),
  bceWithLogits: some('reduction', 'weight', 'posWeight'),
  klDiv: some('reduction', 'logTarget'),
  gaussianNllLoss: some('reduction', 'full', 'eps'),
  nllLoss: some('reduction', 'weight', 'ignoreIndex'),
  crossEntropy: some('reduction', 'weight', 'ignoreIndex', 'labelSmoothing'),
  scaledDotProductAttention: some('attnMask', 'isCausal', 'dropoutP', 'scale', 'generator'),
  ...all(some('stride', 'padding', 'ceilMode', 'dilation'), ['maxPool1d', 'maxPool2d', 'maxPool2dWithIndices']),
  ...all(some('stride', 'padding', 'ceilMode', 'countIncludePad', 'divisorOverride'), ['avgPool1d', 'avgPool2d']),
  ...all(some('eps'), ['layerNorm', 'groupNorm', 'instanceNorm']),
  batchNorm: some('eps', 'training', 'momentum'),
}

/** The operations again, each behind the check of its arguments; in-place forms take what their operations take, with a tensor first. */
export function checkedOperations<O extends Ops<Tensor>>(operations: O): O {
  const slots: [string, readonly Slot[]][] = Object.entries(SLOTS)
  for (const form of IN_PLACE_FORMS) slots.push([`${form}_`, ['tensor', ...(SLOTS[form] as readonly Slot[]).slice(1)]])
  const unchecked = operations as unknown as Readonly<Record<string, Operation>>
  const options: Readonly<Record<string, object>> = OPTIONS
  const checked = ([op, of]: [string, readonly Slot[]]): [string, Operation] => {
    // An in-place form takes the options of its operation.
    const names = options[op] ?? options[op.replace(/_$/, '')]
    return [op, checkedOperation(op, unchecked[op]!, of, names && Object.keys(names))]
  }
  return { ...operations, ...Object.fromEntries(slots.map(checked)) }
}

// biome-ignore lint/suspicious/noExplicitAny: of any signature.
type Operation = (...args: any[]) => unknown

/** Functions of one and two arguments, the most called, without an array of them. `options`: the names that options may have. */
export function checkedOperation<F extends Operation>(op: string, call: F, slots: readonly Slot[], options?: readonly string[]): F {
  const fits = slots.map((slot) => fitOf(slot, options))
  const [first, second] = fits as [Fit, Fit]
  let wrapper: Operation
  if (slots.length === 1) {
    wrapper = (x) => {
      if (!first(x)) throw refusal(op, slots, [x], options)
      if (hasDevices) [x] = onOneDevice(op, [x]) as [unknown]
      return tracing === null ? call(x) : traced(op, call, [x])
    }
  } else if (slots.length === 2) {
    wrapper = (x, y) => {
      if (!first(x) || !second(y)) throw refusal(op, slots, [x, y], options)
      if (hasDevices) [x, y] = onOneDevice(op, [x, y]) as [unknown, unknown]
      return tracing === null ? call(x, y) : traced(op, call, [x, y])
    }
  } else {
    wrapper = (...args) => {
      for (let i = 0; i < fits.length; i++) if (!fits[i]!(args[i])) throw refusal(op, slots, args, options)
      if (hasDevices) args = onOneDevice(op, args)
      return tracing === null ? call(...args) : traced(op, call, args)
    }
  }
  // Functions are called by name over the wire and shown in stacks.
  return Object.defineProperty(wrapper, 'name', { value: op }) as F
}

/** Operations that take tensors of two devices: they copy from one to the other. */
const BETWEEN_DEVICES: readonly string[] = ['copy_', 'to']

/**
 * The arguments of a call with all tensors on one device: those of no dimension follow the others from the cpu, as numbers do.
 * @throws DEVICE_MISMATCH
 */
export function onOneDevice(op: string, args: unknown[]): unknown[] {
  const tensors = args.flatMap(tensorsIn)
  const away = tensors.find(({ storage }) => storage.memory !== CPU)
  if (away === undefined || BETWEEN_DEVICES.includes(op)) return args
  const { memory } = away.storage
  const isNumber = (x: Tensor): boolean => x.storage.memory === CPU && x.ndim === 0 && (args.includes(x) || op.startsWith('index'))
  const stray = tensors.find((x, i) => x.storage.memory !== memory && (!isNumber(x) || (i === 0 && op.endsWith('_'))))
  if (stray !== undefined) {
    const devices = tensors.map((x) => x.device.toString())
    throw new PostgradError('DEVICE_MISMATCH', {
      op,
      expected: 'tensors of one device (numbers, and tensors of the cpu without dimensions, may come along)',
      got: devices.join(', '),
      remedy: `Move them to one device first: x.to('${away.device}').`,
      values: { devices },
    })
  }
  return args.map((arg) => (isTensor(arg) && arg.storage.memory !== memory ? arg.to(away.device) : arg))
}

/** Those of an argument: itself, the items of a list, the values of options. */
function tensorsIn(arg: unknown): Tensor[] {
  if (isTensor(arg)) return [arg]
  return typeof arg === 'object' && arg !== null && !ArrayBuffer.isView(arg) ? Object.values(arg).filter(isTensor) : []
}

function traced(op: string, call: Operation, args: readonly unknown[]): unknown {
  return inSpan('operation', op, undefined, () => call(...args))
}

type Fit = (x: unknown) => boolean

const kindOf = (slot: Slot): Kind => slot.replace(/\?+$/, '') as Kind

function fitOf(slot: Slot, options?: readonly string[]): Fit {
  const kind = kindOf(slot)
  const fits: Fit =
    options !== undefined && (kind === 'options' || kind === 'named or options')
      ? (x) => FITS[kind](x) && (typeof x === 'string' || hasOnly(x as object, options))
      : FITS[kind]
  if (slot.endsWith('??')) return (x) => x === undefined || x === null || fits(x)
  return slot.endsWith('?') ? (x) => x === undefined || fits(x) : fits
}

/** instanceof first, since it is cheap; `isTensor` knows those of another realm or copy too. */
const isOne: Fit = (x) => x instanceof Tensor || isTensor(x)
const isNumber: Fit = (x) => typeof x === 'number'
const isNumbers: Fit = (x) => isListOf(x, isNumber)
const isOptions: Fit = (x) => typeof x === 'object' && x !== null && !Array.isArray(x) && !isTensor(x)

const FITS: Readonly<Record<Kind, Fit>> = {
  tensor: isOne,
  operand: (x) => typeof x === 'number' || isOne(x),
  filling: (x) => typeof x === 'number' || typeof x === 'boolean' || isOne(x),
  number: isNumber,
  'number or boolean': (x) => typeof x === 'number' || typeof x === 'boolean',
  boolean: (x) => typeof x === 'boolean',
  string: (x) => typeof x === 'string',
  numbers: isNumbers,
  dims: (x) => typeof x === 'number' || isNumbers(x),
  tensors: (x) => isListOf(x, isOne),
  options: isOptions,
  'named or options': (x) => typeof x === 'string' || isOptions(x),
  list: Array.isArray,
  'number or list': (x) => typeof x === 'number' || Array.isArray(x),
  // The operation knows which dtypes and devices there are, and says so.
  target: (x) => x !== undefined,
}

const WORDS: Readonly<Record<Kind, string>> = {
  tensor: 'tensor',
  operand: 'tensor or number',
  filling: 'tensor or number or boolean',
  number: 'number',
  'number or boolean': 'number or boolean',
  boolean: 'boolean',
  string: 'string',
  numbers: 'number[]',
  dims: 'number or number[]',
  tensors: 'tensor[]',
  options: '{…}',
  'named or options': 'string or {…}',
  list: 'list',
  'number or list': 'number or list',
  target: 'dtype or device or tensor',
}

function refusal(op: string, slots: readonly Slot[], args: readonly unknown[], options?: readonly string[]): Error {
  // Of a function of two arguments that was called with one, say one.
  const given = args.slice(0, args.findLastIndex((x) => x !== undefined) + 1)
  const at = slots.findIndex((slot, i) => !fitOf(slot, options)(args[i]))
  // Of the right kind, so its names are wrong.
  if (options !== undefined && fitOf(slots[at]!)(args[at]))
    checkOptions<Record<string, unknown>>(op, args[at] as Record<string, unknown>, options)
  const expected = slots.map(
    (slot) => `${WORDS[kindOf(slot)]}${slot.endsWith('??') ? ' or null' : ''}${slot.endsWith('?') ? ' or nothing' : ''}`,
  )
  return invalidArgument(
    op,
    `(${expected.join(', ')})`,
    `(${given.map(argumentText).join(', ')})`,
    remedy(kindOf(slots[at]!), args[at], at),
  )
}

function remedy(kind: Kind, got: unknown, at: number): string {
  if (got instanceof Promise) return 'Await the promise first.'
  if (isOptions(got) && kind !== 'options' && kind !== 'named or options' && kind !== 'tensor' && kind !== 'operand') {
    return `Write the value itself as argument ${at + 1}, without braces: arguments go by their order here; a method's own tensor is argument 1.`
  }
  if (kind === 'numbers' && typeof got === 'number') return 'Write [2, 3], not 2, 3.'
  if (kind === 'tensors' && isTensor(got)) return 'Put the tensors into an array: [x, y].'
  if ((kind === 'tensor' || kind === 'operand') && typeof got === 'boolean')
    return `Write tensor(${got}): it promotes as a boolean does in PyTorch.`
  if ((kind === 'tensor' || kind === 'operand') && got !== undefined && got !== null) return 'Make a tensor of it: tensor(values).'
  return `Look at argument ${at + 1}; a method's own tensor is argument 1.`
}
