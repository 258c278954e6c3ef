/** A file that processes share, killed in the middle of their work, and with the lock. */
import { type ChildProcess, spawn } from 'node:child_process'
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { expect, test } from '@jest/globals'
import { FileStore } from './file-store.js'
import { numbersFrom } from './operations.fixture.js'

const PROGRAM = fileURLToPath(new URL('./file-store.fixture.js', import.meta.url))

async function inFolder(body: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-store-'))
  try {
    await body(join(folder, 'store'))
    // Nobody's lock is left, nor what broke one.
    expect(readdirSync(folder)).toEqual(['store'])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

interface Child {
  readonly process: ChildProcess
  readonly lines: string[]
  line(n: number): Promise<void>
  ended: Promise<unknown>
}

function start(mode: string, path: string, name: string): Child {
  const child = spawn(process.execPath, [PROGRAM, mode, path, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  let rest = ''
  child.stdout.on('data', (text) => {
    rest += text
    const parts = rest.split('\n')
    rest = parts.pop()!
    lines.push(...parts)
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  const line = async (n: number) => {
    while (lines.length < n && child.exitCode === null) await sleep(2)
    expect(lines.length).toBeGreaterThanOrEqual(n)
  }
  return { process: child, lines, ended, line }
}

/** `npm run soak -- --rounds 500 store/file-store` takes more. */
const ROUNDS = Number(process.env.POSTGRAD_SOAK_ROUNDS ?? 3)

test('STO-17: processes that are killed while they write lose nothing that they were told, and add nothing twice', () =>
  inFolder(async (path) => {
    const seed = Math.trunc(performance.timeOrigin) % 100_000
    const random = numbersFrom(seed)
    const store = new FileStore(path)
    const children: Child[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const pair = [1, 2].map((i) => start('add', path, `${i}`))
      children.push(...pair)
      for (const child of pair) await child.line(3)
      await sleep(random(20))
      for (const child of pair) child.process.kill('SIGKILL')
      await store.add('n', 1)
      await Promise.all(pair.map(({ ended }) => ended))
    }
    const told = children.flatMap(({ lines }) => lines.map(Number))
    const n = Number(await store.getText('n'))
    // Only one child printed each sum. Not printed: at most one sum of each child, added just before its kill, and ours, one each round.
    const untold = n - told.length
    const facts = {
      isOnce: new Set(told).size === told.length,
      isThere: Math.max(...told) <= n,
      isAll: untold >= ROUNDS && untold <= ROUNDS + children.length,
    }
    expect({ seed, ...facts }).toEqual({ seed, isOnce: true, isThere: true, isAll: true })
    for (const i of [1, 2]) expect(await store.getText(`large ${i}`)).toBe('x'.repeat(100_000))
    store.close()
  }))

test('STO-16: the lock of a process that was killed is broken, by one of those who want it', () =>
  inFolder(async (path) => {
    const stores = [1, 2, 3].map(() => new FileStore(path))
    await stores[0]!.set('n', '0')
    for (let round = 1; round <= 3; round++) {
      const holder = start('hold', path, 'holder')
      await holder.line(1)
      const sums = stores.map((store) => store.add('n', 1))
      await sleep(20)
      expect(lstatSync(`${path}.lock`).isSymbolicLink()).toBe(true)
      holder.process.kill('SIGKILL')
      expect((await Promise.all(sums)).sort((a, b) => a - b)).toEqual([1, 2, 3].map((i) => 3 * (round - 1) + i))
      await holder.ended
    }
    for (const store of stores) store.close()
  }))

const threads = process.platform === 'linux' ? test : test.skip // Elsewhere a lock names no thread, only its process.

threads('STO-16: the lock of a thread that was ended is broken, though its process lives', () =>
  inFolder(async (path) => {
    const store = new FileStore(path)
    const worker = new Worker(PROGRAM, { argv: ['hold', path, 'holder'], stdout: true })
    await new Promise((resolve) => worker.stdout.once('data', resolve))
    const sum = store.add('n', 1)
    await sleep(20)
    await worker.terminate()
    expect(await sum).toBe(1)
    store.close()
  }),
)

test('STO-13: a process waits for what another sets', () =>
  inFolder(async (path) => {
    const store = new FileStore(path)
    const child = start('wait', path, 'child')
    await child.line(1)
    await store.set('answer', '42')
    expect(await store.getText('thanks')).toBe('child')
    await child.ended
    expect(child.lines).toEqual(['waiting', '42'])
    store.close()
  }))
