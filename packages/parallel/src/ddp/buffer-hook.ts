/** Hooks that replace the broadcast of buffers. PyTorch: `_BufferCommHook` of `torch/nn/parallel/distributed.py`. */
import type { Tensor } from '@postgrad/tensor'

/**
 * Called with the module's buffers by their names, [any shape] each, which it makes alike on all ranks by writing to them. It is awaited, and may begin any collectives of
 * the group, as all ranks call it in the same place.
 */
export type BufferCommHook<S = unknown> = (state: S, buffers: ReadonlyMap<string, Tensor>) => unknown

/** Options of `registerBufferCommHook`. */
export interface BufferCommHookOptions {
  /** Before the first forward pass of all, or the first after a synchronised one; or after that forward pass, before its backward pass. Default: after it. */
  readonly location?: BufferCommHookLocation
}

/** Where a hook of buffers is called. PyTorch: `_BufferCommHookLocation`. */
export type BufferCommHookLocation = 'preForward' | 'postForward'

/** One that is registered. */
export interface BufferHook {
  readonly location: BufferCommHookLocation
  run(buffers: ReadonlyMap<string, Tensor>): unknown
}
