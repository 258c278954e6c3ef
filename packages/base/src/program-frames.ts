/** Whether a stack's frame is postgrad's own or the program's. */
import { houseOf } from './own-file.js'

/** Node's default of 10 may end within our own frames. */
const FRAMES_MAX = 64
const house = pathOf(houseOf())
/** Its place: a path, or a `file:` URL, of POSIX or of Windows. */
const FRAME = /(?:^|[\s(])(?:file:\/\/)?\/?((?:\/|[A-Za-z]:\/)[^()]*:\d+:\d+)\)?$/
/** The repository's packages hold tests, too, which count as programs. */
const PACKAGE_CODE = /^[a-z-]+\/(?:dist|src)\/(?!(?:.*\/)?fixtures\/|.*\.(?:test|suite|fixture)\.)/
const INSTALLED = /node_modules\/(?:@postgrad|postgrad)\//

/** The frames that have called this, innermost first: lines of a stack, trimmed. */
export function framesOnStack(): string[] {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES_MAX
  const { stack = '' } = new Error()
  Error.stackTraceLimit = stackTraceLimit
  return stack
    .split('\n')
    .slice(2)
    .map((line) => line.trim())
}

/**
 * Where the program threw an error, by its stack: the innermost frame that is not of postgrad, or the line of a module that Node could not read. '' if there is none. For an error
 * of another thread: by its `remoteStack`.
 */
export function placeOfThrown(error: unknown): string {
  const lines = (textOf(error, 'remoteStack') ?? textOf(error, 'stack') ?? '').split('\n')
  const unread = lines.find((line) => /^file:.*:\d+$/.test(line))
  // A message may name a place, too: of a file that the program could not read, say.
  const places = lines.filter((line) => /^\s*at /.test(line) && !isOwnFrame(line)).map(placeOfFrame)
  return unread ?? places.find((place) => place !== '') ?? ''
}

/** A program may throw anything: what has no such text, or fails when it is asked for it, has none. */
function textOf(thrown: unknown, key: string): string | undefined {
  try {
    const value: unknown = (Object(thrown) as Record<string, unknown>)[key]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/** `file:line:column` of a frame; '' if it names none. A `file:` URL becomes its path. */
export function placeOfFrame(line: string): string {
  const place = FRAME.exec(line.replaceAll('\\', '/'))?.[1] ?? ''
  return line.includes('file://') ? decoded(place) : place
}

/** Whether a frame is in a file of postgrad. In a bundle of the user's that is unknown: there no frame is. */
export function isOwnFrame(line: string, own = house): boolean {
  const place = placeOfFrame(line)
  if (INSTALLED.test(place)) return true
  if (own === null || !place.startsWith(own)) return false
  // An installed postgrad's folder has no file of a user.
  return own.endsWith('/dist/') || PACKAGE_CODE.test(place.slice(own.length))
}

function pathOf(url: string | null): string | null {
  return url === null ? null : decoded(new URL(url).pathname).replace(/^\/(?=[A-Za-z]:)/, '')
}

/** 'my%20dir' is 'my dir' in the frames of CommonJS. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
