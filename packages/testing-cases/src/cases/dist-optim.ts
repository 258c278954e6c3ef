/**
 * The cases of PyTorch's `dist_optimizer_test.py`: two remote modules with the same weight, three steps with each optimizer; with the second weight frozen; and
 * optimizers that fail. Their twins in Python, with the same names, are in `scripts/golden/dist.py`.
 */
import { add, matmul, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { Adadelta, Adagrad, Adam, Adamax, AdamW, type Optimizer, RMSprop, Rprop, SGD } from '@postgrad/nn'
import { DistributedOptimizer, type OptimizerClass } from '@postgrad/parallel'
import { expose, type RRef, remote, rref } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { constant, type NumberCase, type Plain, type Plains, plain, using } from './case.js'
import type { ErrorCase } from './errors.js'

/** PyTorch's MyModule. */
export class OptimizedModule {
  readonly w: Tensor
  constructor(w: Plain, requiresGrad: boolean) {
    this.w = constant(w).requiresGrad_(requiresGrad)
  }
  forward(x: Tensor): Tensor {
    return matmul(this.w, x)
  }
  weight(): RRef<Tensor> {
    return rref(this.w)
  }
  value(): Promise<Plain> {
    return plain(this.w)
  }
}

interface Setting {
  readonly optimizer: string
  /** Whether the second module's weight requires no grad. */
  readonly frozen: boolean
}

const OPTIMIZERS: Readonly<Record<string, readonly [OptimizerClass, object]>> = {
  adagrad: [Adagrad, { lr: 0.05 }],
  adam: [Adam, { lr: 1e-2, amsgrad: true }],
  adamw: [AdamW, { lr: 0.05, amsgrad: true }],
  sgd: [SGD, { lr: 0.05 }],
  sgd_nesterov: [SGD, { lr: 1e-3, momentum: 1, weightDecay: 1, nesterov: true }],
  adadelta: [Adadelta, { rho: 0.95 }],
  rmsprop: [RMSprop, { lr: 0.05 }],
  adamax: [Adamax, { lr: 0.05 }],
  rprop: [Rprop, { lr: 0.05 }],
}
const WITH_NONE_GRADS = ['sgd', 'rmsprop', 'rprop', 'adadelta']

async function train(
  { w, t1, t2 }: Plains,
  optimizerClass: OptimizerClass,
  options: object,
  { frozen, overlaps = false }: { readonly frozen: boolean; readonly overlaps?: boolean },
): Promise<Plains> {
  const module1 = remote('worker1', OptimizedModule, [w!, true])
  const module2 = remote('worker2', OptimizedModule, [w!, !frozen])
  const params = [await module1.call('weight', []), await module2.call('weight', [])]
  const optimizer = new DistributedOptimizer(optimizerClass, params, options)
  const out: Record<string, Plain> = {}
  return using([module1, module2, ...params, optimizer], async () => {
    for (let step = 0; step < 3; step++) {
      await distAutograd.context(async (ctx) => {
        const output1 = await module1.call('forward', [constant(t2!)])
        const output2 = await module2.call('forward', [output1])
        const roots = [sum(add(output2, constant(t1!)))]
        if (overlaps) await ctx.backward(roots, { optimizer })
        else {
          await ctx.backward(roots)
          await optimizer.step(ctx)
        }
        out[`w1_${step}`] = await module1.call('value', [])
        out[`w2_${step}`] = await module2.call('value', [])
      })
    }
    return out
  })
}

function caseOf({ optimizer, frozen }: Setting): NumberCase {
  const [optimizerClass, options] = OPTIMIZERS[optimizer]!
  const name = `dist_optim_${optimizer}${frozen ? '_none_grads' : ''}`
  const main = (inputs: Plains) => train(inputs, optimizerClass, options, { frozen })
  expose({ [name]: main })
  return { name, shows: `${optimizer}${frozen ? ', a parameter without a gradient' : ''}`, main }
}

export const optimizerCases: readonly NumberCase[] = Object.keys(OPTIMIZERS).flatMap((optimizer) =>
  [false, ...(WITH_NONE_GRADS.includes(optimizer) ? [true] : [])].map((frozen) => caseOf({ optimizer, frozen })),
)

/** Adam again, whose steps overlap the passes: the same numbers. */
export const distOptimOverlapped = (inputs: Plains): Promise<Plains> =>
  train(inputs, ...OPTIMIZERS.adam!, { frozen: false, overlaps: true })

export class OptimizerThatFails implements Optimizer {
  readonly paramGroups = []
  step(): void {
    throw new RangeError('Error running optimizer.')
  }
  zeroGrad(): void {}
  stateDict() {
    return { state: {}, paramGroups: [] }
  }
  loadStateDict(): void {}
  set(): void {}
}

export class OptimizerThatIsNotMade extends OptimizerThatFails {
  constructor() {
    super()
    throw new RangeError('Error creating optimizer.')
  }
}

async function failing(optimizerClass: OptimizerClass): Promise<unknown> {
  const w: Plain = { dtype: 'float32', shape: [1, 1], data: [1] }
  const modules = ['worker1', 'worker2'].map((worker) => remote(worker, OptimizedModule, [w, true]))
  const params = await Promise.all(modules.map((module) => module.call('weight', [])))
  const optimizer = new DistributedOptimizer(optimizerClass, params)
  return using([...modules, ...params, optimizer], () =>
    distAutograd.context(async (ctx) => {
      await ctx.backward([sum(await modules[1]!.call('forward', [await modules[0]!.call('forward', [constant(w)])]))])
      await optimizer.step(ctx)
    }),
  )
}

export const optimizerFailsToStep = (): Promise<unknown> => failing(OptimizerThatFails)
export const optimizerFailsToBeMade = (): Promise<unknown> => failing(OptimizerThatIsNotMade)

export const optimizerErrorCases: readonly ErrorCase[] = [
  {
    name: 'dist_optim_exception',
    main: optimizerFailsToStep,
    message: 'Error running optimizer.',
    expected: {
      code: 'OPTIMIZER_STEP_FAILED',
      values: { owners: ['worker1', 'worker2'], stepped: [] },
      cause: { name: 'RangeError', message: 'Error running optimizer.' },
    },
  },
  {
    name: 'dist_optim_exception_on_constructor',
    main: optimizerFailsToBeMade,
    message: 'Error creating optimizer.',
    expected: {
      code: 'OPTIMIZER_CREATION_FAILED',
      values: { owners: ['worker1', 'worker2'] },
      cause: { name: 'RangeError', message: 'Error creating optimizer.' },
    },
  },
]

expose({ OptimizedModule, OptimizerThatFails, OptimizerThatIsNotMade, optimizerFailsToStep, optimizerFailsToBeMade, distOptimOverlapped })
