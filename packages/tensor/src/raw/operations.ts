/** The operations that compute and record nothing, by name, for raw functions, composites and derivatives. `ops/define/define.ts` fills it. */

/** All operations by name, without the check of their arguments. Its members come from `ops/types.ts`. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by merging.
export interface Ops {}

export const rawOperations = {} as Ops
