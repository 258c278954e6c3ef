/** The text of an error on the command line: what failed and where, its code, the remedy, the causes, the stack. */
import { isPostgradError } from 'postgrad'
import { readSections } from './explain/sections.js'

/** A frame of postgrad or of this command. */
const HOUSE = /\/node_modules\/(postgrad|@postgrad|commander|comlink)\//
/** After the frames of a worker that an error has passed. */
const MARKER = /^--- above: on worker .* ---$/
/** Lines of a stack that are worth showing: the program's own are on top. */
const STACK_LINES_MAX = 12
const CAUSES_MAX = 8

/**
 * @param where "worker 'worker1'", or null when no worker is at fault
 * @param lastLines what it printed at last
 */
export function errorText(error: unknown, where: string | null, lastLines: readonly string[] = []): string {
  const lines = [`postgrad: ${where === null ? '' : `${where} failed: `}${headline(error)}`]
  if (isPostgradError(error)) lines.push(`  code: ${error.code}`)
  else if (typeof (error as { code?: unknown } | null)?.code === 'string') lines.push(`  code: ${(error as { code: string }).code}`)
  let cause: unknown = causeOf(error)
  for (let depth = 0; cause !== undefined && depth < CAUSES_MAX; depth++) {
    // LAUNCH_FAILED and CONNECT_FAILED repeat their cause's message: then only the cause's code is news.
    const code = (cause as { code?: unknown }).code
    if (!headline(error).includes(withoutOp(cause))) lines.push(`  caused by: ${headline(cause)}`)
    if (typeof code === 'string') lines.push(`  cause's code: ${code}`)
    cause = causeOf(cause)
  }
  const stack = stackOf(error)
  if (stack.length > 0) lines.push('  stack:', ...stack.map((line) => `    ${line}`))
  if (lastLines.length > 0) lines.push('  its last lines:', ...lastLines.map((line) => `    ${line}`))
  // A program, or a peer, may throw codes of its own.
  if (isPostgradError(error) && readSections().has(error.code)) lines.push(`  more: npx postgrad explain ${error.code}`)
  return `${lines.join('\n')}\n`
}

/** "PostgradError" says less than the op that begins its message; its remedy is at the message's end. */
function headline(error: unknown): string {
  if (isPostgradError(error)) return error.message
  const name = (error as { name?: unknown } | null)?.name
  return typeof name === 'string' && error !== null && typeof error === 'object' ? `${name}: ${messageOf(error)}` : String(error)
}

function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : String(error)
}

function withoutOp(error: unknown): string {
  const message = messageOf(error)
  return isPostgradError(error) && message.startsWith(`${error.op}: `) ? message.slice(error.op.length + 2) : message
}

function causeOf(error: unknown): unknown {
  return (Object(error) as { cause?: unknown }).cause ?? undefined
}

/**
 * The frames where the error arose: of the innermost cause, on its worker. A typed error that arose here says all in its message: its
 * stack would show the insides of this command.
 */
function stackOf(error: unknown): string[] {
  let at = error
  for (let depth = 0; causeOf(at) !== undefined && depth < CAUSES_MAX; depth++) at = causeOf(at)
  const { remoteStack, stack: here, syscall } = Object(at) as { remoteStack?: unknown; stack?: unknown; syscall?: unknown }
  // So does one that says what the system has refused.
  const isTold = isPostgradError(at) || (isPostgradError(error) && syscall !== undefined)
  const stack = typeof remoteStack === 'string' ? remoteStack : isTold ? undefined : here
  if (typeof stack !== 'string') return []
  const isTyped = isPostgradError(at)
  const lines: string[] = []
  let frames: string[] = []
  for (const line of [...stack.split('\n').map((text) => text.trim()), '']) {
    if (line.startsWith('at ') && !line.includes('node:')) frames.push(line)
    const isMarker = MARKER.test(line)
    if (!isMarker && line !== '') continue
    lines.push(...ofProgram(frames, !isTyped && lines.length === 0))
    if (isMarker) lines.push(line)
    frames = []
  }
  return lines.slice(0, STACK_LINES_MAX)
}

/** Without our own frames that called the program. `isOurs`: without a frame of a program, our frames show the fault. */
function ofProgram(frames: readonly string[], isOurs: boolean): readonly string[] {
  const programs = frames.findLastIndex((frame) => !HOUSE.test(frame)) + 1
  return frames.slice(0, programs === 0 && isOurs ? frames.length : programs)
}
