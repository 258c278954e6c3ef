/**
 * The pages of the API reference, as data: on which page the names of which source files are. `reference.mjs` fails if a file with public names is on no page,
 * or if a page has no names.
 */

/** Section → pages as [name in the address, title, what a reader can look up there, source files without `src/` and `.ts`, or folders of them]. */
export const API_SECTIONS = {
  Cluster: [
    ['launch', 'launch and Cluster', 'start worker threads or processes, and end them', ['cluster/main', 'cluster/admin', 'cluster/host']],
    ['init', 'init and Member', 'let a process join a group, as with init_rpc', ['cluster/init', 'transport/socket']],
    [
      'stores',
      'Stores',
      'share small values between processes',
      ['transport/store', 'transport/clock', 'transport/link', 'rpc/api/store-over-rpc'],
    ],
    ['jobs', 'Jobs', 'run functions on any thread of a pool', ['jobs', 'cluster/jobs', 'cluster/worker']],
  ],
  'Calls and references': [
    [
      'calls',
      'Calls',
      'call a function of another worker',
      [
        'rpc/api/api',
        'rpc/api/names',
        'rpc/api/intercept',
        'rpc/api/group',
        'rpc/api/worker',
        'rpc/api/worker-local',
        'rpc/common',
        'rpc/core/call-credits',
        'rpc/core/hooks',
        'wire/sendable',
        'wire/trace-field',
      ],
    ],
    ['references', 'References and streams', 'hold a value that stays on its worker', ['rpc/references', 'rpc/calls']],
    [
      'actors',
      'Actors and supervision',
      'give an object its own mailbox, and restart it when it fails',
      ['rpc/actors', 'rpc/api/actor', 'rpc/api/actor-handle', 'rpc/api/actor-register', 'rpc/api/monitor', 'rpc/api/supervise', 'actor'],
    ],
    ['rights', 'Rights', 'limit what a role may ask of a worker', ['rpc/authority', 'rpc/common/authority']],
    ['watching', 'Watching', 'read counts, events and open work of workers', ['rpc/observe', 'rpc/worker']],
    ['errors', 'Errors and futures', 'handle failures, and wait for results', ['base', 'wire/error-codec']],
  ],
  'Distributed training': [
    ['contexts', 'Contexts and passes', 'run one backward pass over several workers', ['dist-autograd']],
    [
      'distributed-optimizer',
      'Optimizers and modules of other workers',
      'step the parameters of all workers',
      [
        'parallel/distributed-optimizer',
        'parallel/local-optimizer',
        'parallel/optimizer-groups',
        'parallel/remote-module',
        'parallel/remote-params',
        'parallel/clip-grad',
      ],
    ],
    [
      'checkpoints',
      'Checkpoints and model files',
      'save a distributed run, and continue it; save a model of several workers in one file',
      ['parallel/checkpoint', 'parallel/full-state'],
    ],
    ['ddp', 'DistributedDataParallel', 'train copies of a model on parts of each batch', ['parallel/ddp', 'parallel/sync-norm']],
    [
      'ddp-hooks',
      'DDP hooks and optimizers',
      'compress gradients, average models, split optimizer state',
      [
        'parallel/ddp/comm-hooks',
        'parallel/ddp/half-hooks',
        'parallel/ddp/power-sgd',
        'parallel/ddp/local-sgd',
        'parallel/ddp/zero-redundancy-optimizer',
        'parallel/ddp/buffer-hook',
        'parallel/ddp/grad-bucket',
      ],
    ],
    ['pipelines', 'Pipelines', 'cut a model into stages on several workers', ['parallel/pipelining']],
    ['groups', 'Process groups', 'make groups of ranks', ['process-group/group', 'process-group/api/groups', 'process-group/api/barriers']],
    [
      'collectives',
      'Collectives',
      'reduce, gather, scatter and send tensors between ranks',
      ['process-group/algorithms', 'process-group/api'],
    ],
  ],
  Tensors: [
    [
      'tensor',
      'Tensor',
      'use a tensor and its methods',
      [
        'tensor/tensor/tensor',
        'tensor/tensor/grad-ops',
        'tensor/values/dtype',
        'tensor/values/json',
        'tensor/values/read',
        'tensor/values/shape',
      ],
    ],
    [
      'creation',
      'Create tensors',
      'make tensors, from values or at random',
      ['tensor/tensor/create', 'tensor/ops/sample', 'tensor/values/generator'],
    ],
    ['arithmetic', 'Arithmetic', 'add, multiply, divide', ['tensor/ops/arithmetic']],
    ['math', 'Functions of each element', 'apply a mathematical function to each element', ['tensor/ops/math']],
    ['comparisons', 'Comparisons and logic', 'compare tensors', ['tensor/ops/comparisons']],
    ['reductions', 'Reductions', 'sum up, take a mean or an extreme', ['tensor/ops/reductions']],
    ['sorting', 'Sort and accumulate', 'sort, take the largest, sum up step by step', ['tensor/ops/order']],
    ['products', 'Products of matrices', 'multiply matrices, measure distances', ['tensor/ops/products']],
    ['views', 'Views and slices', 'change a shape without a copy', ['tensor/ops/views', 'tensor/ops/slices']],
    ['arrange', 'Join, repeat, copy', 'join and arrange tensors', ['tensor/ops/join', 'tensor/ops/arrange', 'tensor/ops/copies']],
    ['indexing', 'Index and gather', 'read and write chosen elements', ['tensor/ops/indexing', 'tensor/ops/gather']],
    ['activations', 'Activation functions', 'apply an activation without a module', ['tensor/ops/activations']],
    ['losses', 'Loss functions', 'compute a loss', ['tensor/ops/losses']],
    [
      'neural',
      'Layers as functions',
      'apply a layer with weights of your own',
      ['tensor/ops/neural', 'tensor/ops/convolution', 'tensor/ops/pooling', 'tensor/ops/normalization'],
    ],
    [
      'operation-options',
      'Options of operations',
      'look up an option of a tensor operation',
      ['tensor/values/options', 'tensor/values/options-neural', 'tensor/ops/define'],
    ],
    [
      'devices',
      'Devices, memory, sparse tensors',
      'choose a device, free memory',
      ['tensor/tensor/device', 'tensor/tensor/memory-scope', 'tensor/heap/memory', 'tensor/kernels/table/table', 'tensor/sparse'],
    ],
    [
      'kernels',
      'Own kernels',
      'write an operation as a gpu.js function',
      ['autograd/api/define-kernel', 'tensor/raw', 'tensor/kernels/table/ops'],
    ],
  ],
  Gradients: [
    [
      'gradients',
      'Gradients',
      'compute gradients in one worker',
      ['autograd/engine', 'autograd/graph', 'autograd/api/functions', 'autograd/record/checkpoint'],
    ],
    [
      'derivatives',
      'Derivatives and checks',
      'compute Jacobians, check your own gradients',
      ['autograd/api/functional', 'autograd/api/gradcheck', 'autograd/record/custom-function'],
    ],
  ],
  Modules: [
    ['module', 'Module and containers', 'build a model from modules', ['nn/module']],
    [
      'layers',
      'Linear, embedding, shape, dropout',
      'use the basic layers',
      ['nn/layers/linear', 'nn/layers/embedding', 'nn/layers/shape-modules', 'nn/layers/dropout'],
    ],
    ['convolution-layers', 'Convolution and pooling', 'build a convolutional network', ['nn/layers/conv', 'nn/layers/pooling']],
    ['normalization-layers', 'Normalization', 'normalize activations', ['nn/layers/normalization', 'nn/layers/batch-norm']],
    ['recurrent-layers', 'Recurrent networks', 'build a recurrent network', ['nn/recurrent']],
    ['attention-layers', 'Attention and transformers', 'build a transformer', ['nn/layers/attention', 'nn/layers/transformer']],
    [
      'activation-layers',
      'Activations as modules',
      'add an activation to a Sequential',
      ['nn/layers/activations', 'nn/layers/activations-composed'],
    ],
    ['loss-layers', 'Losses as modules', 'use a loss as a module', ['nn/layers/losses']],
    ['safetensors', 'Safetensors', 'save weights, and load those of other programs', ['nn/safetensors']],
  ],
  'Optimizers and data': [
    ['optimizers', 'Optimizers', 'choose an optimizer', ['nn/optim']],
    ['schedulers', 'Learning-rate schedulers', 'change the learning rate during a run', ['nn/optim/schedulers']],
    ['data', 'Datasets and loaders', 'read batches of examples', ['data']],
    ['metrics', 'Metrics, progress and plots', 'log, watch and draw a training run', ['training']],
    ['files', 'CSV and IDX files', 'read tables and MNIST files', ['data/csv', 'data/idx']],
  ],
  Testing: [
    ['simulation', 'Simulation', 'simulate a cluster in one thread', ['testing/simulate', 'testing/inlined', 'sim']],
    ['exploration', 'Exploration and replay', 'try orders of delivery, and repeat a run', ['testing/explore', 'testing/replay']],
    ['faults', 'Faults', 'lose, delay and repeat messages', ['testing/faults', 'sim/faults']],
    ['checks', 'Checks and matchers', 'check that a run was sound', ['testing/check']],
  ],
  Plugins: [['plugin', 'Plugin', 'add a part of your own to workers', []]],
}

/** Every page as { name, title, purpose, files }. */
export const API_PAGES = Object.values(API_SECTIONS).flatMap((pages) =>
  pages.map(([name, title, purpose, files]) => ({ name, title, purpose, files })),
)
