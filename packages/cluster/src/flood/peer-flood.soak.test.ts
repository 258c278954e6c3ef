/**
 * For an hour, a peer in a restricted role floods a training member with every kind of message: `npm run soak -- --flood-ms 3600000 peer-flood`. POSTGRAD_SOAK_FLOOD_KIND, a part of a name,
 * limits it to kinds with such names. Prints each kind's figures.
 */
import { expect, test } from '@jest/globals'
import { floodPeers } from './peer-flood.fixture.js'

const FLOOD_MS = Number(process.env.POSTGRAD_SOAK_FLOOD_MS ?? 3_600_000)
/** Turns take what was asked for; starts, warming up and the ends of turns come on top. */
const PATIENCE_MS = 1.5 * FLOOD_MS + 300_000
/** What a member may need for a flooder: the budgets of one identity and of one worker's calls (SECURITY.md), and what a heap of that has not given back. */
const MEMORY_BYTES_MAX = 512 * 2 ** 20
const RATIO_MIN = 0.8
/** Of one kind alone: turns next to each other in which nobody floods differ by a third on a shared machine. */
const KIND_RATIO_MIN = 0.5

test(
  `SEC-6 SEC-10: ${FLOOD_MS} ms of floods: a member trains at ${RATIO_MIN} of its speed at least, in bounded memory, and nobody dies`,
  async () => {
    const lines: string[] = []
    const print = process.env.POSTGRAD_SOAK_TOLD === '1' ? console.error : (line: string) => lines.push(line)
    const result = await floodPeers(FLOOD_MS, process.env.POSTGRAD_SOAK_FLOOD_KIND ?? '', print).catch((error) => {
      console.log(lines.join('\n'))
      throw error
    })
    const { kinds, ratio, rssBytesBefore, deaths } = result
    console.log(`${lines.join('\n')}\nall: ${ratio.toFixed(2)} of the steps; ${Math.round(rssBytesBefore / 2 ** 20)} MiB before`)
    expect(deaths).toEqual([])
    expect(kinds.filter(({ rssBytes }) => rssBytes - rssBytesBefore > MEMORY_BYTES_MAX)).toEqual([])
    expect(kinds.filter((kind) => kind.ratio < KIND_RATIO_MIN)).toEqual([])
    expect(ratio).toBeGreaterThanOrEqual(RATIO_MIN)
  },
  PATIENCE_MS,
)
