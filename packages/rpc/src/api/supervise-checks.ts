/** Checks of the arguments of `supervise` and `add`. */
import { PostgradError } from '@postgrad/base'

/** @throws INVALID_ARGUMENT */
export function checkChildren(options: { readonly children: unknown }): void {
  const children: unknown = options?.children
  if (!Array.isArray(children)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'supervise',
      expected: 'a list of children',
      got: kindOf(children),
      remedy: `Write supervise({ children: [${CHILD}] }).`,
    })
  }
  for (const spec of children) checkSpec('supervise', spec)
}

const CHILD = "{ name: 'agent', actor: Agent, args: [], worker: 'worker0' }"

/** @throws INVALID_ARGUMENT */
export function checkSpec(op: string, spec: unknown): void {
  const { name, actor, args = [] } = (spec ?? {}) as Record<'name' | 'actor' | 'args', unknown>
  const wrong =
    typeof name !== 'string'
      ? `${kindOf(name)} as its name`
      : typeof actor !== 'function'
        ? `${kindOf(actor)} as the actor of '${name}'`
        : Array.isArray(args)
          ? null
          : `${kindOf(args)} as the args of '${name}'`
  if (wrong === null) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a child with a name, an exposed class as its actor, and a list of args',
    got: wrong,
    remedy: `Write ${CHILD}.`,
  })
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value
}
