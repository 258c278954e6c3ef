/** `npm run example design-note`: both programs of PyTorch's documents, on a cluster of threads; draws the loss of the second. */
import { relative } from 'node:path'
import type { Tensor } from 'postgrad'
import { runCommand, userPath } from '../shared/command.js'
import { type LogRow, writeRun } from '../shared/log.js'
import { meanOver } from '../shared/means.js'
import { onCluster } from '../shared/on-cluster.js'
import { commandLine, count, countUpTo, outFile, positive, type SettingsOf, seed } from '../shared/options.js'
import { prepareOut } from '../shared/out-file.js'
import { commandOf } from '../shared/place.js'
import { designNote, endToEnd } from './program.js'

const NAME = commandOf('design-note')
const OPTIONS = {
  workers: countUpTo(64, 2, 'workers of the second program, in a ring: each trains two tensors of its neighbour'),
  steps: count(5, 'steps of its optimizer'),
  lr: positive(0.05, "the optimizer's learning rate"),
  seed: seed(),
  out: outFile('out/design-note.svg'),
}
const { help, read } = commandLine(
  NAME,
  "The two programs of PyTorch's documents on distributed autograd: the one whose graph its design\nnote draws, and the end-to-end one with references and the distributed optimizer.",
  OPTIONS,
)

process.exitCode = await runCommand({ name: NAME, help, read, run, interrupted: 'nothing was written' }, process.argv.slice(2))

async function run({ out: given, workers, steps, lr, seed }: SettingsOf<typeof OPTIONS>, signal: AbortSignal): Promise<void> {
  const out = userPath(given ?? 'out/design-note.svg')
  await prepareOut(out)
  // The first program needs two.
  const names = Array.from({ length: Math.max(2, workers) }, (_, i) => `worker${i}`)
  const ring = names.slice(0, workers)
  const program = new URL('./program.js', import.meta.url)
  const losses = await onCluster({ program, workers: names, seed, signal }, async (cluster) => {
    const note = await cluster.on('worker0').run(designNote)
    console.log(`The design note: t3 = myAdd(t1, t2) on worker1, loss = (t3 · t4).sum() = ${note.loss.toFixed(4)}`)
    for (const [i, name] of ['t1', 't2', 't4'].entries()) {
      console.log(`\n${name}, and its gradient (${['t4', 't4', 't1 + t2'][i]}):\n${beside(note.values[i]!, note.gradients[i]!)}`)
    }
    const losses = await Promise.all(ring.map((name, i) => cluster.on(name).run(endToEnd, ring[(i + 1) % ring.length]!, steps, lr)))
    console.log(`\nEnd to end: every worker at once, ${steps} steps of SGD on two tensors of its neighbour.`)
    console.log(`Each of 18 elements has gradient 1, so a step lowers the loss by 18 · ${lr} = ${(18 * lr).toFixed(3)}`)
    for (const [i, name] of ring.entries()) {
      console.log(`${name} → ${ring[(i + 1) % ring.length]}: loss ${losses[i]!.map((loss) => loss.toFixed(3)).join(', ')}`)
    }
    return losses
  })
  const arrows = ring.map((name, i) => `${name} → ${ring[(i + 1) % ring.length]}`)
  const rows = losses[0]!.map((_, step): LogRow => {
    const all = losses.map((of) => of[step]!)
    return { step, loss: meanOver(all, all.length)[0]!, ...Object.fromEntries(arrows.map((name, i) => [name, all[i]!])) }
  })
  const log = await writeRun(out, rows, {
    title: 'Every worker trains two tensors of its neighbour',
    subtitle: `${steps} steps of SGD on ${workers} workers at once`,
    xName: 'steps',
    panels: [
      {
        name: 'sum of all elements',
        curves: arrows.map((tag, i) => ({ tag, style: i === 0 ? ('dark' as const) : ('pale' as const), dots: true })),
      },
    ],
  })
  console.log(`loss curve: ${relative(process.cwd(), out)}, log: ${relative(process.cwd(), log)}`)
}

/** Matrices of the same height, row by row. */
function beside(...matrices: readonly Tensor[]): string {
  const rows = matrices.map((matrix) => (matrix.toArray() as number[][]).map((row) => row.map((x) => x.toFixed(4)).join('  ')))
  return rows[0]!.map((_, i) => `  ${rows.map((row) => row[i]).join('    |    ')}`).join('\n')
}
