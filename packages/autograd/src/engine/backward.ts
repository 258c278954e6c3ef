/**
 * A local backward pass from start to end: `backward` adds to the leaves' `.grad`, `grad` gives the gradients of chosen tensors. PyTorch:
 * `torch.autograd.backward`, `torch.autograd.grad`.
 */
import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import { withCallerInStack } from '@postgrad/base/internal'
import type { BackwardOptions, BackwardPassOptions, Tensor } from '@postgrad/tensor'
import { checkOptions, checkTensors, records, settle } from '@postgrad/tensor/internal'
import type { GradSink } from '../graph/grad-sink.js'
import { leadingTo } from '../graph/needed.js'
import type { Node } from '../graph/node.js'
import { retainGrad } from '../graph/retain-grad.js'
import { gradientEdge } from '../graph/variable.js'
import { Engine, graphRoot } from './engine.js'
import { type Capture, GraphTask } from './graph-task.js'
import { InputBuffer } from './input-buffer.js'
import { HeapReadyQueue } from './ready-queue.js'
import { validateRoots } from './validate-roots.js'

/** Options of `grad`. */
export interface GradOptions extends BackwardOptions {
  /** The gradients of the outputs, each in the shape of its output; null, or left out, for scalars. */
  readonly gradOutputs?: readonly (Tensor | null)[]
  /** Whether the result has null for an input that the outputs do not depend on; default false: such an input is an error. */
  readonly allowUnused?: boolean
}

const engine = new Engine()

/**
 * Adds d(Σ roots) / d(leaf) to `.grad` of every leaf from which the roots were computed, or only of `options.inputs`. After an error some leaves may have their
 * gradient, and others not. PyTorch: `torch.autograd.backward`.
 * @param grads the gradients of the roots, in their shapes; null, or left out, means 1, for a scalar root
 * @throws INVALID_ARGUMENT, NO_ROOTS or NO_INPUTS if an argument is not valid; ROOT_REQUIRES_NO_GRAD if a root has no graph; ROOT_NOT_SCALAR if a root without
 * a gradient is not a scalar; ROOT_GRADIENT_MISMATCH if a gradient does not fit to its root; INPUT_REQUIRES_NO_GRAD if one of `inputs` does not require grad;
 * GRAPH_FREED if an earlier pass has freed the graph; SAVED_VARIABLE_MODIFIED if the program has written to a tensor that the graph saved; INVALID_GRADIENT if
 * a node returns a gradient that does not fit; the errors of custom functions and hooks
 * @example
 * const x = tensor([1, 2], { requiresGrad: true })
 * backward(x.square().sum())
 * x.grad // [2, 4]
 */
export function backward(
  roots: Tensor | readonly Tensor[],
  grads?: Tensor | readonly (Tensor | null)[] | null,
  options: BackwardPassOptions<Tensor> = {},
): void {
  checkOptions('backward', options, ['retainGraph', 'createGraph', 'inputs'])
  const list = asList(roots)
  const gradList = grads === undefined || grads === null ? undefined : asList<Tensor | null>(grads)
  validateRoots(list, { op: 'backward', ...(gradList && { grads: gradList }) })
  if (options.inputs !== undefined) checkInputs(options.inputs)
  withCallerInStack(backward, () => engine.backward(list, gradList, options))
}

/**
 * Returns d(Σ outputs) / d(input) for each input, leaf or not. `.grad` does not change. Only the nodes that lead to the inputs run. A gradient may
 * be an expanded view, as that of `sum` is: `clone()` it before you write to it. PyTorch: `torch.autograd.grad`.
 * @throws UNUSED_INPUT if the outputs do not depend on an input and `allowUnused` is false; INPUT_REQUIRES_NO_GRAD if an input does not require grad; the
 * errors of `backward`
 * @example
 * const x = tensor([1, 2], { requiresGrad: true })
 * grad(x.square().sum(), [x]) // [[2, 4]]
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: readonly Tensor[],
  options?: GradOptions & { allowUnused?: false },
): Tensor[]
export function grad(outputs: Tensor | readonly Tensor[], inputs: readonly Tensor[], options?: GradOptions): (Tensor | null)[]
export function grad(outputs: Tensor | readonly Tensor[], inputs: readonly Tensor[], options: GradOptions = {}): (Tensor | null)[] {
  const list = asList(outputs)
  validateRoots(list, { op: 'grad', ...(options.gradOutputs && { grads: options.gradOutputs }) })
  checkTensors('grad', 'the inputs', inputs)
  const captures = new Map<Node, Capture[]>()
  inputs.forEach((input, index) => {
    const edge = gradientEdge(input)
    if (edge === null) throw inputRequiresNoGrad('grad', index)
    const capture = { slot: edge.inputNr, index }
    const list = captures.get(edge.node)
    if (list === undefined) captures.set(edge.node, [capture])
    else list.push(capture)
  })
  const { createGraph = false, retainGraph = createGraph } = options
  const queue = new HeapReadyQueue()
  const task = new GraphTask({ keepGraph: retainGraph, createGraph, sink: noSink, queue })
  const root = graphRoot(list, options.gradOutputs)
  engine.computeDependencies(task, [root])
  task.captures = captures
  task.needed = leadingTo(root, captures)
  withCallerInStack(grad, () => {
    engine.start(task, root, new InputBuffer(0))
    engine.drive(task, queue)
    if (records) settle(task.captured)
  })
  return inputs.map((_, index) => {
    const captured = task.captured[index] ?? null
    if (captured === null && options.allowUnused !== true) throw unusedInput(index)
    return captured
  })
}

const noSink: GradSink = {
  accumulate: () => assert.fail('grad(…) captures leaves, it does not accumulate'),
}

/** Non-leaves retain their gradients, as in PyTorch. */
function checkInputs(inputs: readonly Tensor[]): void {
  checkTensors('backward', 'the inputs', inputs)
  if (inputs.length === 0) {
    throw new PostgradError('NO_INPUTS', {
      op: 'backward',
      expected: 'at least one of inputs',
      got: 'none',
      remedy: 'Leave inputs out to reach every leaf.',
    })
  }
  for (const [index, input] of inputs.entries()) {
    if (!input.requiresGrad) throw inputRequiresNoGrad('backward', index)
    retainGrad(input)
  }
}

function asList<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T]
}

function inputRequiresNoGrad(op: string, index: number): PostgradError {
  return new PostgradError('INPUT_REQUIRES_NO_GRAD', {
    op,
    expected: `input ${index} to require grad`,
    got: 'a tensor that does not',
    remedy: 'Call requiresGrad_() on it before the forward pass.',
    values: { input: index },
  })
}

function unusedInput(index: number): PostgradError {
  return new PostgradError('UNUSED_INPUT', {
    op: 'grad',
    message: `the outputs do not depend on input ${index}`,
    remedy: 'Leave it out, or pass allowUnused: true to get null for it.',
    values: { input: index },
  })
}
