/** The programs that are kept with PyTorch's numbers, as `scripts/golden/dist_programs.mjs` wrote them, and the tolerance of a run. */
import { readFileSync } from 'node:fs'
import type { Outcome, Program } from './program.js'

export interface GoldenProgram {
  readonly seed: number
  readonly program: Program
  /** Elements in logical order; shapes and dtypes are the program's. A parameter that no root depends on has none. */
  readonly torch: { readonly roots: readonly number[]; readonly gradients: TorchGradients; readonly read?: readonly TorchGradients[] }
}

type TorchGradients = Readonly<Record<string, readonly number[]>>

/** Read again each time: tests only, once per file. */
export function goldenPrograms(): readonly GoldenProgram[] {
  const file = new URL('../../golden/programs.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { programs: GoldenProgram[] }).programs
}

/**
 * Relative to the largest element of a gradient, and absolute for one that is nearly 0. Sums and products are added up in other orders than PyTorch's, and
 * functions may differ in the last place, over dozens of operations; most programs have float32 somewhere.
 */
const RELATIVE = 2e-6
const ABSOLUTE = 2e-8

/** Differences of `got` from PyTorch's numbers, one line each; and the largest error, as a share of the tolerance. */
export function programDifferences(
  got: Outcome,
  { program, torch }: GoldenProgram,
): { readonly problems: string[]; readonly worst: number } {
  const problems: string[] = []
  let worst = 0
  const compare = (name: string, data: readonly number[], want: readonly number[]) => {
    const allowed = ABSOLUTE + RELATIVE * Math.max(...want.map(Math.abs))
    for (const [i, value] of want.entries()) {
      const error = Math.abs((data[i] as number) - value) / allowed
      worst = Math.max(worst, error)
      if (!(error <= 1)) problems.push(`${name}[${i}]: ${data[i]}, PyTorch has ${value}`)
    }
    if (data.length !== want.length) problems.push(`${name}: ${data.length} elements, PyTorch has ${want.length}`)
  }
  compare(
    'roots',
    got.roots.flatMap(({ data }) => data),
    torch.roots,
  )
  const gradients = [...got.read, got.gradients]
  const wanted = [...(torch.read ?? []), torch.gradients]
  if (gradients.length !== wanted.length) problems.push(`gradients were read ${gradients.length} times, by PyTorch ${wanted.length}`)
  for (const [time, all] of wanted.entries()) {
    for (const [i, { dtype, shape }] of program.params.entries()) {
      const [gradient, want] = [gradients[time]?.[i], all[i]]
      const name = `gradient ${i}${time < wanted.length - 1 ? ` when read for the ${time + 1}. time` : ''}`
      if (gradient === undefined || want === undefined) {
        if (gradient !== undefined || want !== undefined) problems.push(`${name}: ${want === undefined ? 'PyTorch has none' : 'missing'}`)
      } else if (gradient.dtype !== dtype || String(gradient.shape) !== String(shape)) {
        problems.push(`${name}: ${gradient.dtype} [${gradient.shape}], the parameter is ${dtype} [${shape}]`)
      } else compare(name, gradient.data, want)
    }
  }
  return { problems, worst }
}
