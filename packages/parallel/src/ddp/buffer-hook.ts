/** Hooks that replace the broadcast of buffers. PyTorch: `_BufferCommHook` of `torch/nn/parallel/distributed.py`. */
import type { Tensor } from '@postgrad/tensor'

/**
 * A hook that makes the buffers of all ranks alike by writing to them. It receives the buffers of the module by name. DDP awaits it. The hook may begin any
 * collectives of the group, if all ranks do so in the same order.
 */
export type BufferCommHook<S = unknown> = (state: S, buffers: ReadonlyMap<string, Tensor>) => unknown

/** Options of `registerBufferCommHook`. */
export interface BufferCommHookOptions {
  /** When the hook runs, relative to the forward passes whose buffers are made alike; default 'postForward'. */
  readonly location?: BufferCommHookLocation
}

/**
 * When a buffer hook runs: 'preForward' before the forward pass, or 'postForward' after the forward pass and before its backward pass. PyTorch:
 * `_BufferCommHookLocation`.
 */
export type BufferCommHookLocation = 'preForward' | 'postForward'

/** One that is registered. */
export interface BufferHook {
  readonly location: BufferCommHookLocation
  run(buffers: ReadonlyMap<string, Tensor>): unknown
}
