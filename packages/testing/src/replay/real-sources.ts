/**
 * Watches what a simulated program asks of the real world: chance, time, timers. None of these depend on the seed, so a run that uses them is not
 * repeatable. For runs that are made twice (`twice.ts`): the watched functions still do what they did.
 */

/** One door that was used. */
export interface RealSource {
  /** "Math.random" */
  readonly what: string
  /** Where it was asked first: a line of the program's own stack. */
  readonly where: string
  readonly times: number
}

type Door = readonly [holder: object, key: string, what: string]

/** Code around programs that may ask what it likes. */
const NOT_THE_PROGRAM = /node:internal|node_modules[\\/](\.pnpm[\\/])?(@?jest|expect|vitest|@vitest|@jest)/
const TIMERS = ['setTimeout', 'setInterval', 'setImmediate']

/** Watches from `watch` to `end`. One at a time: a run within a run is watched as part of it. */
export class RealSources {
  private readonly seen = new Map<string, { where: string; times: number }>()
  private readonly undo: (() => void)[] = []

  watch(): void {
    const world = globalThis as unknown as Record<string, object>
    const doors: Door[] = [
      [Math, 'random', 'Math.random'],
      [globalThis.performance, 'now', 'performance.now'],
      ...TIMERS.map((name): Door => [globalThis, name, name]),
    ]
    if (world.crypto !== undefined)
      doors.push([world.crypto, 'randomUUID', 'crypto.randomUUID'], [world.crypto, 'getRandomValues', 'crypto.getRandomValues'])
    for (const door of doors) this.watchDoor(door)
    this.watchDate()
  }

  end(): readonly RealSource[] {
    for (const undo of this.undo.splice(0).reverse()) undo()
    return [...this.seen].map(([what, { where, times }]) => ({ what, where, times }))
  }

  private watchDoor([holder, key, what]: Door): void {
    const asked = (holder as Record<string, unknown>)[key]
    if (typeof asked !== 'function') return
    const note = () => this.note(what)
    this.replace(
      holder,
      key,
      new Proxy(asked, {
        apply: (target, self, args) => {
          note()
          return Reflect.apply(target, self, args)
        },
      }),
    )
  }

  /** Of a Date only what shows the present is real. */
  private watchDate(): void {
    const note = (what: string) => this.note(what)
    const now = new Proxy(Date.now, {
      apply: (target) => {
        note('Date.now')
        return target()
      },
    })
    const watched = new Proxy(Date, {
      construct: (target, args, newTarget) => {
        if (args.length === 0) note('new Date()')
        return Reflect.construct(target, args, newTarget)
      },
      apply: (target) => {
        note('Date()')
        return target()
      },
      get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
    })
    this.replace(globalThis, 'Date', watched)
  }

  private replace(holder: object, key: string, value: unknown): void {
    const before = Object.getOwnPropertyDescriptor(holder, key)
    Object.defineProperty(holder, key, { value, configurable: true, writable: true, enumerable: before?.enumerable ?? false })
    this.undo.push(() => {
      if (before === undefined) Reflect.deleteProperty(holder, key)
      else Object.defineProperty(holder, key, before)
    })
  }

  private note(what: string): void {
    const known = this.seen.get(what)
    if (known !== undefined) {
      known.times++
      return
    }
    const lines = stackAbove(this.note)
    // The nearest caller counts: a matcher that looks at the time is not the program.
    const [nearest] = lines.filter((line) => !/^Error|RealSources|new Proxy|Object\.(apply|construct|get)|Reflect\.|^at note /.test(line))
    if (nearest === undefined || NOT_THE_PROGRAM.test(nearest)) return
    this.seen.set(what, { where: nearest.replace(/^at /, ''), times: 1 })
  }
}

/** The frames above a function: by itself and not by its file, of which there is another in a bundle. */
function stackAbove(fn: unknown): readonly string[] {
  const holder: { stack?: string } = {}
  Error.captureStackTrace(holder, fn as () => void)
  return (holder.stack ?? '').split('\n').map((line) => line.trim())
}
