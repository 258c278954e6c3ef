/** Processes that join a group, for tests: each runs a script, and the test reads its output. */
import { createServer } from 'node:net'
import { type ScriptEnd, script } from '../script.fixture.js'

export const MEMBER = new URL('./fixtures/group-member.js', import.meta.url)

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

export type Line = Readonly<Record<string, unknown>>
export interface Ended {
  readonly code: number | null
  readonly err: string
  readonly lines: readonly Line[]
}

export function read({ code, out, err }: ScriptEnd): Ended {
  return {
    code,
    err,
    lines: out
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
  }
}

export function group(scenario: string, method: string, worldSize: number, options: object = {}): Promise<Ended[]> {
  const start = async (rank: number) => read(await script(MEMBER, scenario, method, `${rank}`, `${worldSize}`, JSON.stringify(options)))
  return Promise.all(Array.from({ length: worldSize }, (_, rank) => start(rank)))
}
