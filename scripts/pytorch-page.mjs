/**
 * Writes docs/pytorch.md: which names of PyTorch are here, and which are not. `npm run pytorch` (needs a Python with PyTorch, `PYTHON=… npm run pytorch`).
 * A name is here when something of the same name in camelCase, or of the name in `OTHER_NAMES`, is exported or is a method of Tensor;
 * `pytorch-page.test.ts` checks the committed page at each `npm test`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { capture, root, setupOrExit } from './setup.mjs'

/** Names that postgrad spells otherwise, or has as a method. */
const OTHER_NAMES = {
  absolute: 'abs',
  arccos: 'acos',
  arcsin: 'asin',
  arctan: 'atan',
  arctan2: 'atan2',
  binary_cross_entropy: 'bceLoss',
  binary_cross_entropy_with_logits: 'bceWithLogits',
  clip: 'clamp',
  clip_grad_norm: 'clipGradNorm_',
  concat: 'cat',
  concatenate: 'cat',
  divide: 'div',
  fix: 'trunc',
  frombuffer: 'fromTypedArray',
  from_numpy: 'fromTypedArray',
  greater: 'gt',
  greater_equal: 'ge',
  isfinite: 'isFinite',
  isinf: 'isInf',
  isnan: 'isNaN',
  kl_div: 'klDiv',
  less: 'lt',
  less_equal: 'le',
  logsigmoid: 'logSigmoid',
  logsumexp: 'logSumExp',
  max_pool2d_with_indices: 'maxPool2dWithIndices',
  moveaxis: 'movedim',
  multiply: 'mul',
  negative: 'neg',
  not_equal: 'ne',
  row_stack: 'vstack',
  sparse_coo_tensor: 'SparseTensor',
  subtract: 'sub',
  swapdims: 'swapaxes',
  t: 'T',
  true_divide: 'div',
}
/** Interfaces: the compiled code has no value of that name. */
const TYPES = ['Dataset', 'IterableDataset', 'Sampler']
/** Names that a program does not call: switches of back ends, tracing, quantization, mere forwards, obsolete names. */
const LEFT_OUT =
  /_copy$|^(fake_)?quantiz|vital|torch_function|^(Callable|List|Optional|Tuple|Union|Container|RNNBase|RNNCellBase|NLLLoss2d|fork|wait|obj|candidate)$|^(DF|Map|Iter)\w*Pipe$|^(DataChunk|DataLoader2|functional_datapipe|guaranteed_\w+|non_deterministic|runtime_\w+)$|^(import_ir|merge_type|parse_|unify_|init_num|unsafe_|native_)|_script|^(set_flush_denormal|(s|g)et_num\w*threads|skip_init|convert_conv2d\w+)$/

await setupOrExit()
const { code, output } = await capture(process.env.PYTHON ?? 'python3', [join(root, 'scripts/golden/torch_names.py')])
if (code !== 0) {
  console.error(`the names of PyTorch could not be listed:\n${output}\n  Remedy: PYTHON=<a Python that can import torch> npm run pytorch`)
  process.exit(1)
}
const { version, ...kinds } = JSON.parse(output)
const nn = await import(pathToFileURL(join(root, 'packages/postgrad/dist/nn.js')).href)
const doors = ['index', 'nn', 'nn-functional', 'optim', 'data'].map(
  (door) => import(pathToFileURL(join(root, `packages/postgrad/dist/${door}.js`)).href),
)
const ours = Object.assign({}, ...(await Promise.all(doors)))
const distributed = await import(pathToFileURL(join(root, 'packages/postgrad/dist/distributed.js')).href)
const both = { ...ours, ...distributed }
const have = {
  'torch.nn': both,
  'torch.nn.init': ours.init,
  'torch.nn.utils': nn,
  'torch.distributed': { ...distributed, PrefixStore: ours.PrefixStore },
  'torch.nn.parallel': both,
  'torch.distributed.optim': both,
}

const lines = [
  '# What of PyTorch is here',
  '',
  `This page lists the public names of PyTorch ${version.replace(/[a-z].*/, '')} by kind: those that postgrad has, and those that it does not have. Search it for a name that your program uses. \`npm run pytorch\` writes it.`,
  '',
  '- A name is spelt in camelCase, or as after the arrow. A function of one tensor is also a method of it.',
  '- A name that is here need not have all of its options. Its type shows those that it has.',
  '',
  '| PyTorch | import from |',
  '|---|---|',
  '| `torch.nn`, `torch.nn.utils` | `postgrad/nn` |',
  '| `torch.nn.init` | `postgrad/nn`, as `init.zeros_` |',
  '| `torch.nn.functional`; names of `torch` that are also there, such as `conv1d` | `postgrad/nn/functional` |',
  '| `torch.optim`, `torch.optim.lr_scheduler` | `postgrad/optim` |',
  '| `torch.utils.data` | `postgrad/data` |',
  '| `torch.distributed`, `torch.nn.parallel`, `SyncBatchNorm` | `postgrad/distributed` |',
  '| `torch.distributed.optim` | `postgrad` (`DistributedOptimizer`), `postgrad/distributed` (others) |',
  '| all others | `postgrad` |',
  '',
  'The stores `FileStore`, `HashStore` and `PrefixStore` are in `postgrad`. For `torch.distributed.rpc` and `torch.distributed.pipelining`, see [Coming from PyTorch](guide/pytorch.md).',
  '',
  '| | here | not here |',
  '|---|---|---|',
]
for (const [kind, names] of Object.entries(kinds)) {
  const shown = names.filter((name) => !LEFT_OUT.test(name))
  const here = shown.filter((name) => ourName(kind, name) !== null)
  const text = here.map((name) => (same(name) === ourName(kind, name) ? `\`${name}\`` : `\`${name}\` → \`${ourName(kind, name)}\``))
  const not = shown.filter((name) => !here.includes(name)).map((name) => `\`${name}\``)
  lines.push(`| ${kind}: ${here.length} of ${shown.length} | ${text.join(', ') || 'none'} | ${not.join(', ') || 'none'} |`)
}
lines.push(
  '',
  'Tensors are float32, float64, int32 or bool. postgrad does not have complex and half-precision numbers, quantization, `torch.jit`, `torch.fx`, `torch.distributions` or torchvision.',
  'Sparse tensors exist as gradients of embeddings.',
  '',
)
writeFileSync(join(root, 'docs/pytorch.md'), lines.join('\n'))
console.log(
  lines
    .filter((line) => line.startsWith('| torch'))
    .map((line) => line.split('|')[1].trim())
    .join('\n'),
)

function same(name) {
  return name.replace(/(?<=[a-z0-9])_(?=[a-z0-9])/g, '\0').replace(/\0(.)/g, (_, letter) => letter.toUpperCase())
}

function ourName(kind, name) {
  if (TYPES.includes(name)) return name
  for (const one of [same(name), OTHER_NAMES[name]]) {
    if (one !== undefined && (one in (have[kind] ?? ours) || (have[kind] === undefined && one in ours.Tensor.prototype))) return one
  }
  return null
}
