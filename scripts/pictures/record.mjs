/** Runs a program in a simulation and keeps its messages and calls, in order, as rows of a sequence diagram. The same seed gives the same rows. */
import { currentWorker } from '../../packages/postgrad/dist/index.js'
import { simulate } from '../../packages/postgrad/dist/testing.js'

/**
 * Runs `main` on worker0. `frames`: each message that arrived, and each crash, with `type`, the name of its kind; `calls`: where each call began and ended, as positions in
 * `frames`; `sent`: the types of messages in the order in which they left, each with its position.
 */
export async function record(count, main, { seed = 0 } = {}) {
  const workers = Array.from({ length: count }, (_, i) => `worker${i}`)
  const seen = []
  const simulation = await simulate({ workers, seed }, async (sim) => {
    for (const at of workers) {
      await sim.on(at).run(() => void currentWorker().inspect((event) => seen.push({ ...event, at, position: sim.world.trace.count - 1 })))
    }
    return sim.on('worker0').run(() => main(sim))
  })
  const frames = simulation.trace.named.map((event, position) => {
    const received = seen.find((one) => one.kind === 'received' && one.position === position)
    return { ...event, position, type: received?.type ?? '' }
  })
  const calls = seen
    .filter(({ kind }) => kind === 'begun')
    .map((begun) => {
      const ended = seen.find(
        (one) =>
          one.kind === 'ended' &&
          one.at === begun.at &&
          one.from === begun.from &&
          one.requestId === begun.requestId &&
          one.position >= begun.position,
      )
      return { at: begun.at, what: begun.what, from: begun.position, to: ended?.position ?? null, outcome: ended?.outcome ?? null }
    })
  return { workers, frames, calls, seen, result: simulation.result }
}

/** "call predict #1, context 0.0" → "call predict" */
export function plain(label) {
  return label
    .replace(/, (context|pass) [\d.]+/g, '')
    .replace(/ #\d+/g, '')
    .replace(/ context [\d.]+$/, '')
    .replace('tensor.', '')
}

/** Where each row is that was made of a frame, for bars. */
export function rowOf(rows, position) {
  const at = rows.findIndex((row) => row.position >= position)
  return at === -1 ? rows.length - 1 : at
}
