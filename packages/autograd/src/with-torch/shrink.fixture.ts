/** The smallest part of a program of `builder.fixture.ts` over which postgrad and PyTorch still differ, as a text. */
import type { Program, Step } from './builder.fixture.js'

/** The program with fewer steps that `isSame` still finds to differ in the same way, as long as it finds one. */
export async function shrink(program: Program, isSame: (candidates: readonly Program[]) => Promise<readonly boolean[]>): Promise<Program> {
  for (let smallest = program; ; ) {
    const fewer = [4, 2, 1].flatMap((n) =>
      Array.from({ length: Math.floor(smallest.steps.length / n) }, (_, i) => ({ ...smallest, steps: smallest.steps.toSpliced(i * n, n) })),
    )
    const quiet = smallest.steps.flatMap((step, i) => (step.quiet ? [{ ...smallest, steps: smallest.steps.with(i, loud(step)) }] : []))
    const shorter = smallest.steps.flatMap((step, i) =>
      step.op === 'loss' && step.args.length > 1
        ? step.args.map((_, k) => ({ ...smallest, steps: smallest.steps.with(i, { ...step, args: step.args.toSpliced(k, 1) }) }))
        : [],
    )
    const candidates = [...fewer, ...shorter, ...quiet]
    const found = (await isSame(candidates)).indexOf(true)
    if (found < 0) return smallest
    smallest = candidates[found]!
  }
}

function loud({ op, args, attrs, outs }: Step): Step {
  return { op, args, attrs, outs }
}

/** A program that can be read. */
export function text({ seed, leaves, steps }: Program): string {
  const used = new Set(steps.flatMap(({ args }) => args))
  const first = leaves
    .filter(({ id }) => used.has(id))
    .map((l) => `  t${l.id} = ${l.dtype} [${l.shape}]${l.requiresGrad ? ', requires grad' : ''}: ${l.data.join(' ')}`)
  const rest = steps.map(
    ({ op, args, attrs, outs, quiet }, i) =>
      `  ${i}: ${outs.map((id) => `t${id}`).join(', ')}${outs.length > 0 ? ' = ' : ''}${op}(${[...args.map((id) => `t${id}`), ...attrs.map((a) => JSON.stringify(a))].join(', ')})${quiet ? ' under noGrad' : ''}`,
  )
  return [`seed ${seed}`, ...first, ...rest].join('\n')
}
