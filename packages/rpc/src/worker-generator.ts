/**
 * The random numbers of each worker: a generator of its own, made from the cluster's seed and the worker's name, so that a program draws
 * the same numbers on threads, in the simulation and inlined, whatever the order of delivery.
 */
import { Generator } from '@postgrad/tensor'

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

export function workerGenerator(seed: number, workerName: string): Generator {
  let hash = FNV_OFFSET ^ seed
  for (let i = 0; i < workerName.length; i++) hash = Math.imul(hash ^ workerName.charCodeAt(i), FNV_PRIME)
  return new Generator(hash >>> 0)
}
