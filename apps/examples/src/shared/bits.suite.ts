/** Results of training as text that is equal only bit by bit. For tests. */

/** Losses as their 64 bits. */
export const bits = (losses: readonly number[]): string => Buffer.from(Float64Array.from(losses).buffer).toString('hex')
