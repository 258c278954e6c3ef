/** What the mutations of this folder are made of. */

/**
 * A mutation that a test catches: it takes one repair out again, by one exact change of a source file. `find` occurs once in the file. `test` and `file` are paths of sources, from the
 * repository: a test of any lane, a module of a package or an app. `rule` is the rule, or the words, with which the names of the tests begin that must fail.
 */
export function t(id, test, rule, file, find, replace, what) {
  return { id, test, rule, file, find, replace, what }
}

/** A file of data-parallel training. */
export function DDP(file) {
  return `packages/parallel/src/ddp/${file}`
}
