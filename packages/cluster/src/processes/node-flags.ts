/** Which flags of Node go on to a process that is started: all but those that say what the main script is, which would run in each process once more. */

const WITH_VALUE: ReadonlySet<string> = new Set(['-e', '--eval', '-p', '--print', '-pe', '--input-type', '-c', '--check'])
const ALONE = /^(--(eval|print|input-type|check)=|-i$|--interactive$|-$)/

/** @param execArgv of this process: flags, each with its value in the same word or in the next */
export function flagsFor(execArgv: readonly string[]): string[] {
  return execArgv.filter((flag, i) => !WITH_VALUE.has(flag) && !ALONE.test(flag) && !WITH_VALUE.has(execArgv[i - 1] ?? ''))
}
