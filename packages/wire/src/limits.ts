/**
 * The limits of a codec, so that bytes from elsewhere cannot make it allocate, recurse or run without bound. The sender has the
 * same limits: the sender gets the error, with its call stack, and not the receiver.
 */
export interface WireLimits {
  /** Length of the packed header, without the tensors after it. At most 16 MiB - 1 (its length has 24 bits). */
  readonly headerBytesMax: number
  /** Arrays and objects within each other, the message and its body included. */
  readonly depthMax: number
  /** Elements of all arrays, keys and values of all objects together. */
  readonly itemsMax: number
}

export const HEADER_BYTES_MAX = 2 ** 24 - 1

export const DEFAULT_LIMITS: WireLimits = { headerBytesMax: 8 * 2 ** 20, depthMax: 128, itemsMax: 1_000_000 }

/** Levels that are kept free below the sender's values for what the codec nests itself (an error's causes and values). */
export const DEPTH_RESERVE = 32
