/**
 * The flags of Node that a started process inherits: all except those that name the main script, which would run again in each process. If a debugger is asked for on a port, each
 * process gets one on a port of its own, and does not wait for it, since a process that waits for its debugger does not notice that its launcher has ended.
 */

const WITH_VALUE: ReadonlySet<string> = new Set(['-e', '--eval', '-p', '--print', '-pe', '--input-type', '-c', '--check'])
const ALONE = /^(--(eval|print|input-type|check)=|-i$|--interactive$|-$)/
/** `[host:]port`, `host` or `port`, as Node reads them: a host is in brackets, or not a mere number. */
const HOST = String.raw`\[[^\]\s]*\]|[^\s:[]*[^\s:\d[][^\s:]*|\d+(?:\.\d+){3}`
const INSPECT = new RegExp(String.raw`(?<!\S)--inspect(?:-brk|-wait)?(?:=(?:(${HOST})(?::\d*)?|\d+)?)?(?!\S)`, 'g')
const INSPECT_PORT = /(?<!\S)--(?:inspect|debug)-port(?:=|\s+)\S+/g

/** @param execArgv of this process: flags, each with its value in the same word or in the next */
export function flagsFor(execArgv: readonly string[]): string[] {
  const kept = execArgv.filter((flag, i) => !WITH_VALUE.has(flag) && !ALONE.test(flag) && !WITH_VALUE.has(execArgv[i - 1] ?? ''))
  return kept
    .filter((flag, i) => !/^--(inspect|debug)-port(=|$)/.test(flag) && !/^--(inspect|debug)-port$/.test(kept[i - 1] ?? ''))
    .map(anyPort)
}

/** What a process inherits: NODE_OPTIONS has flags, too. */
export function environmentFor(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: options } = env
  return options === undefined ? env : { ...env, NODE_OPTIONS: anyPort(options.replace(INSPECT_PORT, '')) }
}

/** An address stays, its port does not. */
const anyPort = (flags: string): string =>
  flags.replace(INSPECT, (_flag, host: string | undefined) => `--inspect=${host === undefined ? '' : `${host}:`}0`)
