/**
 * A rule has one number, and a number one rule: refuses a SPEC.md that defines a rule twice. Tests and mutations name rules by their numbers. Run by `npm test`.
 *
 * Each run first proves that it can fail.
 */
import assert from 'node:assert/strict'
import { join, relative } from 'node:path'
import { projects, read, root } from './setup.mjs'

/** Of the text of a SPEC.md. */
function definedTwice(text) {
  const rules = [...text.matchAll(/^- \*\*([A-Z]+-\d+[a-z]?)\*\*/gm)].map(([, rule]) => rule)
  return [...new Set(rules.filter((rule, i) => rules.indexOf(rule) !== i))]
}

assert.deepEqual(definedTwice('- **A-1** One.\n- **A-2** See A-1.\n- **B-1** Other.\n'), [])
assert.deepEqual(definedTwice('- **A-1** One.\n- **A-2** Two.\n\n- **A-1** Another.\n'), ['A-1'])

let count = 0
for (const folder of projects()) {
  const spec = join(folder, 'SPEC.md')
  const text = read(spec)
  if (text === null) continue
  count++
  for (const rule of definedTwice(text)) {
    console.error(
      `${relative(root, spec)}: ${rule} is defined twice. Give one of the rules a number of its own, and name it so in its tests and mutations.`,
    )
    process.exitCode = 1
  }
}
console.log(`rules: ${count} SPEC.md`)
