/**
 * The random generator of each worker, made from the cluster's seed and the worker's name, so that a program draws the same numbers on
 * threads, in the simulation and inlined, in any order of delivery.
 */
import { Generator } from '@postgrad/tensor'

// FNV-1a, https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * @param life how often the name was started before: the n-th worker of a name draws numbers of its own, the same in every run. The first
 *   draws by the name alone.
 */
export function workerGenerator(seed: number, workerName: string, life = 0): Generator {
  // No name contains a '#'.
  const name = life === 0 ? workerName : `${workerName}#${life}`
  let hash = FNV_OFFSET
  // Byte by byte, in front of the name: a seed that is xored in meets the first letter, and 1 with 'a' is then 2 with 'b'.
  for (let shift = 0; shift < 32; shift += 8) hash = Math.imul(hash ^ ((seed >>> shift) & 0xff), FNV_PRIME)
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), FNV_PRIME)
  return new Generator(hash >>> 0)
}
