/** Loads that can be taken back: `checkpoint/restore.ts` and `full-state/staged-loads.ts` load the modules of one worker, and put them back if another worker fails. */
import type { Module } from '@postgrad/nn'
import type { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

/** @returns a function that gives the module the values again that it has now under these keys */
export function undoOf(module: Module, keys: readonly string[]): () => void {
  const now = module.stateDict()
  const before = new Map<string, Tensor>()
  for (const key of keys) if (Object.hasOwn(now, key)) before.set(key, now[key]!.clone())
  return () => {
    try {
      // A module may compute more from its weights when it loads them.
      module.loadStateDict(Object.fromEntries(before), { strict: false })
    } catch {
      // A module that refuses its old state as well: the caller has its first error, and the weights are put back without it.
    }
    for (const [key, value] of before) raw.copy_(now[key]!, value)
  }
}
