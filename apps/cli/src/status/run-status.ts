/**
 * Makes a run findable: a Unix socket that serves snapshots as lines of JSON, to this user alone. A client writes `{"watch":false}` for one snapshot, or
 * `{"watch":true}` for one a second. A run continues if it cannot make the socket.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Surroundings } from '../surroundings.js'
import { prepareDir, removeDeadSocket, removeSocket, runtimeDir, socketName } from './runtime-dir.js'
import { SNAPSHOT_VERSION, type Snapshot, type StatusSource } from './snapshot.js'

const INTERVAL_MS = 1000
const CLIENTS_MAX = 16
/** Of what a client may say. */
const REQUEST_BYTES_MAX = 4096

export interface RunStatus {
  /** @param source null: no worker is there now */
  show(source: StatusSource | null): void
  close(): Promise<void>
}

export interface RunTitle {
  readonly program: string
  readonly args: readonly string[]
}

/** Null, with a word on stderr, where it cannot be made. */
export async function openStatus(title: RunTitle, around: Surroundings): Promise<RunStatus | null> {
  const folder = runtimeDir(around.env)
  const path = join(folder, socketName(around.pid))
  const status = new StatusServer(title, path, around)
  const why = prepareDir(folder) ?? (await status.listen())
  if (why === null) return status
  if (process.platform !== 'win32') around.stderr.write(`postgrad: 'postgrad ps' does not see this run: ${why}\n`)
  return null
}

class StatusServer implements RunStatus {
  private readonly title: RunTitle
  private readonly path: string
  private readonly around: Surroundings
  private readonly startedMs: number
  private readonly server: Server
  private readonly sockets = new Set<Socket>()
  private readonly watchers = new Map<Socket, (() => void) | null>()
  private source: StatusSource | null = null
  private timer: NodeJS.Timeout | null = null
  private stopListening = (): void => {}

  constructor(title: RunTitle, path: string, around: Surroundings) {
    this.title = title
    this.path = path
    this.around = around
    this.startedMs = around.now()
    this.server = createServer((socket) => this.accept(socket))
    this.server.maxConnections = CLIENTS_MAX
  }

  /** Null, or why not. */
  async listen(): Promise<string | null> {
    // Of a process that had this one's number and was killed.
    await removeDeadSocket(this.path)
    return new Promise((resolve) => {
      this.server.once('error', (error) => resolve(error.message))
      this.server.listen(this.path, () => {
        // A run does not live for its status.
        this.server.unref()
        this.stopListening = this.around.onExit(() => removeSocket(this.path))
        resolve(null)
      })
    })
  }

  show(source: StatusSource | null): void {
    for (const [socket, stop] of this.watchers) {
      stop?.()
      this.watchers.set(socket, null)
    }
    this.source = source
    if (source !== null) for (const socket of this.watchers.keys()) void this.watch(socket, source)
  }

  async close(): Promise<void> {
    this.stopListening()
    this.show(null)
    if (this.timer !== null) clearInterval(this.timer)
    for (const socket of this.sockets) socket.destroy()
    // Takes the file away as well.
    await new Promise<void>((resolve) => this.server.close(() => resolve()))
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket)
    socket.unref()
    let request = ''
    let isAsked = false
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      if (isAsked) return
      request += text
      if (request.length > REQUEST_BYTES_MAX) socket.destroy()
      else if (request.includes('\n')) {
        isAsked = true
        this.serve(socket, request.slice(0, request.indexOf('\n')))
      }
    })
    // The run does not care about a lost client.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      this.sockets.delete(socket)
      this.watchers.get(socket)?.()
      this.watchers.delete(socket)
      if (this.watchers.size === 0 && this.timer !== null) {
        clearInterval(this.timer)
        this.timer = null
      }
    })
  }

  private serve(socket: Socket, request: string): void {
    const wanted = parse(request)
    if (wanted === null) {
      socket.end(`${JSON.stringify({ error: 'write {"watch":false} or {"watch":true}' })}\n`)
      return
    }
    if (!wanted.watch) {
      void this.snapshot().then((snapshot) => socket.end(`${JSON.stringify(snapshot)}\n`))
      return
    }
    this.watchers.set(socket, null)
    if (this.source !== null) void this.watch(socket, this.source)
    this.timer ??= setInterval(() => this.tellAll(), INTERVAL_MS).unref()
    this.tellAll()
  }

  private async watch(socket: Socket, source: StatusSource): Promise<void> {
    const stop = await source.watch()
    if (this.watchers.has(socket) && this.source === source) this.watchers.set(socket, stop)
    else stop()
  }

  private tellAll(): void {
    void this.snapshot().then((snapshot) => {
      const line = `${JSON.stringify(snapshot)}\n`
      // A slow client gets no more until it reads.
      for (const socket of this.watchers.keys()) if (!socket.writableNeedDrain && !socket.destroyed) socket.write(line)
    })
  }

  private async snapshot(): Promise<Snapshot> {
    const { source, title, around } = this
    return {
      version: SNAPSHOT_VERSION,
      pid: around.pid,
      ...title,
      upMs: Math.round(around.now() - this.startedMs),
      restarts: source?.restarts ?? 0,
      workers: source === null ? [] : await source.workers(),
    }
  }
}

function parse(request: string): { readonly watch: boolean } | null {
  try {
    const { watch } = JSON.parse(request) as { watch?: unknown }
    return typeof watch === 'boolean' ? { watch } : null
  } catch {
    return null
  }
}
