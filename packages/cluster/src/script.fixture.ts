/** Runs a script in a process of its own, which must end by itself: so tests see that nothing is left open. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface ScriptEnd {
  /** null if it had to be killed. */
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const PATIENCE_MS = 30_000

export function script(url: URL, ...args: readonly string[]): Promise<ScriptEnd> {
  return run(url, args, false)
}

/** Its output goes to a pipe that is closed when something has come, as by `| head -1`. */
export function scriptToHead(url: URL, ...args: readonly string[]): Promise<ScriptEnd> {
  return run(url, args, true)
}

function run(url: URL, args: readonly string[], isHead: boolean): Promise<ScriptEnd> {
  return new Promise((resolve) => {
    // jest's own flags (and their warnings) must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    const child = spawn(process.execPath, [fileURLToPath(url), ...args], { env, timeout: PATIENCE_MS })
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
      if (isHead) child.stdout.destroy()
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text
    })
    child.on('close', (code) => resolve({ code, out, err }))
  })
}
