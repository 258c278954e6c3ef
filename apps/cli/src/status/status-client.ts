/** Finds live runs by their sockets and asks them. A socket whose process is gone is removed. */
import { existsSync, readdirSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { isSocket, pidOf, removeSocket, whyNotOurs } from './runtime-dir.js'
import { CLIENT_WAIT_MS, SNAPSHOT_VERSION, type Snapshot } from './snapshot.js'

const LINE_LENGTH_MAX = 16_777_216

export interface FoundRun {
  readonly pid: number
  readonly path: string
}

/** What a run says, or why it does not. */
export type RunAnswer = { readonly pid: number } & ({ readonly snapshot: Snapshot } | { readonly silent: string })

/** In the order of their process ids. Throws where the folder is not this user's alone. */
export function findRuns(folder: string): readonly FoundRun[] {
  if (!existsSync(folder)) return []
  const why = whyNotOurs(folder)
  if (why !== null) throw new Error(why)
  const runs = readdirSync(folder).flatMap((name) => {
    const [pid, path] = [pidOf(name), join(folder, name)]
    return pid === null || !isSocket(path) ? [] : [{ pid, path }]
  })
  return runs.sort((a, b) => a.pid - b.pid)
}

/** Null: it has ended. */
export function askRun({ pid, path }: FoundRun): Promise<RunAnswer | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => end({ pid, silent: `does not answer for ${CLIENT_WAIT_MS / 1000} s` }), CLIENT_WAIT_MS)
    const socket = connectTo(path, false, {
      onSnapshot: (snapshot) => end({ pid, snapshot }),
      onEnd: (why) => end(why === null ? null : { pid, silent: why }),
    })
    function end(answer: RunAnswer | null): void {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
  })
}

export interface RunListener {
  onSnapshot(snapshot: Snapshot): void
  /** @param why null: the run has ended */
  onEnd(why: string | null): void
}

/** One snapshot a second, until the run ends or the returned function is called. */
export function watchRun({ path }: FoundRun, listener: RunListener): () => void {
  const socket = connectTo(path, true, listener)
  return () => socket.destroy()
}

function connectTo(path: string, watch: boolean, { onSnapshot, onEnd }: RunListener): Socket {
  let isOver = false
  let text = ''
  const over = (why: string | null): void => {
    if (isOver) return
    isOver = true
    onEnd(why)
  }
  const socket = createConnection(path, () => socket.write(`${JSON.stringify({ watch })}\n`))
  socket.setEncoding('utf8')
  socket.on('data', (piece: string) => {
    text += piece
    const lines = text.split('\n')
    text = lines.pop()!
    for (const line of lines) {
      const snapshot = read(line)
      if (typeof snapshot === 'string') {
        over(snapshot)
        socket.destroy()
        return
      }
      onSnapshot(snapshot)
    }
    if (text.length > LINE_LENGTH_MAX) {
      over('says too much at once')
      socket.destroy()
    }
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED') removeSocket(path)
    over(error.code === 'ECONNREFUSED' || error.code === 'ENOENT' || error.code === 'ECONNRESET' ? null : error.message)
  })
  socket.on('close', () => over(null))
  return socket
}

/** @returns what is wrong with it, in words */
function read(line: string): Snapshot | string {
  try {
    const snapshot = JSON.parse(line) as Snapshot
    if (snapshot.version === SNAPSHOT_VERSION && Array.isArray(snapshot.workers)) return snapshot
    return `is of another version of postgrad (its status has version ${String(snapshot.version)}, this one reads ${SNAPSHOT_VERSION})`
  } catch {
    return 'answers with something other than JSON'
  }
}
