/** Common to the examples of data-parallel training: names of trainers, and the last line, which says whether the replicas stayed alike. */

export const trainerNames = (count: number): string[] => Array.from({ length: count }, (_, i) => `trainer${i}`)

/** By the checksums of all trainers. */
export function sayWhetherAlike(what: string, reports: readonly { readonly checksum: number }[], startedMs: number): void {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  const isAlike = reports.every(({ checksum }) => checksum === reports[0]!.checksum)
  console.log(`${isAlike ? `${what} are alike` : `${what.toUpperCase()} HAVE GONE APART`} after ${seconds} s`)
}
