/** Runs a command as a user does, in a process of its own, for tests. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from '@jest/globals'

const PATIENCE_MS = 50_000

export interface End {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `onOutput` sees all of stdout so far, and may kill. */
export function runScript(
  script: URL,
  args: readonly string[],
  onOutput?: (stdout: string, kill: (signal: NodeJS.Signals) => void) => void,
): Promise<End> {
  return new Promise((resolve) => {
    // jest's own flags (and their warnings) must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    const child = spawn(process.execPath, [fileURLToPath(script), ...args], { env, timeout: PATIENCE_MS })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      onOutput?.(stdout, (signal) => child.kill(signal))
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

/** Tags that open and close in order, attributes in quotes: what a browser insists on. */
export function expectWellFormed(picture: string): void {
  const svg = picture.replaceAll(/<!\[CDATA\[.*?\]\]>/gs, '')
  const open: string[] = []
  const tag = /<(\/?)([\w:-]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/y
  for (let at = svg.indexOf('<'); at >= 0; at = svg.indexOf('<', tag.lastIndex)) {
    tag.lastIndex = at
    const found = tag.exec(svg)
    if (found === null) throw new Error(`not well-formed: ${svg.slice(at, at + 200)}`)
    const [, end, name, , empty] = found
    if (end === '/') expect(open.pop()).toBe(name)
    else if (empty === '') open.push(name!)
  }
  expect(open).toEqual([])
}
