/** Errors of metrics files. Each names the file. */
import { PostgradError } from '@postgrad/base'
import { tooManyOpenFiles } from '@postgrad/base/internal'

/** @param unwritten of a writer: what becomes of its lines */
export function ioFailure(
  op: string,
  action: 'read' | 'write' | 'make the folder of',
  path: string,
  cause: unknown,
  unwritten: string | null = null,
): PostgradError {
  const remedy = tooManyOpenFiles(op, cause)?.remedy ?? remedyOf((cause as { code?: unknown })?.code)
  return new PostgradError('METRICS_IO', {
    op,
    message: `cannot ${action} '${path}': ${(cause as { message?: unknown })?.message ?? String(cause)}`,
    remedy: unwritten === null ? remedy : `${remedy} ${unwritten}`,
    values: { path },
    cause,
  })
}

function remedyOf(code: unknown): string {
  switch (code) {
    case 'ENOENT':
      return `A relative path counts from the working directory, ${process.cwd()}.`
    // mkdir says EEXIST of the last folder, ENOTDIR of an earlier one.
    case 'EEXIST':
    case 'ENOTDIR':
      return 'A part of the path that must be a folder is a file: choose another path.'
    case 'EISDIR':
      return 'It is a folder: name a file in it.'
    case 'EACCES':
    case 'EPERM':
      return 'Look at the permissions of the file and of its folder.'
    case 'ENOSPC':
      return 'The disk is full: make room.'
    default:
      return 'See the cause.'
  }
}

/** @param line from 1 */
export function invalidLine(op: string, path: string, line: number, expected: string, got: string): PostgradError {
  return new PostgradError('METRICS_INVALID', {
    op,
    message: `'${path}', line ${line}: expected ${expected}, got ${got}`,
    remedy: 'Pass a file that a MetricsWriter wrote, or remove the line.',
    values: { path, line },
  })
}

export function empty(op: string, path: string): PostgradError {
  return new PostgradError('METRICS_EMPTY', {
    op,
    expected: `at least one line of metrics in '${path}'`,
    got: 'none',
    remedy: 'The run may not have written its first line yet: flush() or close() its MetricsWriter.',
    values: { path },
  })
}

export function unknownTag(op: string, tag: string, tags: readonly string[], paths: readonly string[]): PostgradError {
  return new PostgradError('METRICS_TAG_UNKNOWN', {
    op,
    expected: `one of the tags ${tags.map((each) => `'${each}'`).join(', ')}`,
    got: `'${tag}', which is in none of ${paths.join(', ')}`,
    remedy: 'Name a tag that the files have.',
    values: { tag, tags },
  })
}

export function notReadYet(op: string, path: string, step: number): PostgradError {
  return new PostgradError('READ_NOT_SYNCHRONOUS', {
    op,
    message: `the line of step ${step} of '${path}' waits for a tensor of another device`,
    remedy: 'Await flush() of the MetricsWriter before the save.',
    values: { path, step },
  })
}

/** @param lost at least one, as `'loss' of step 2` */
export function notReadAtExit(path: string, lost: readonly string[]): PostgradError {
  const more = lost.length === 1 ? '' : ` and ${lost.length - 1} more`
  return new PostgradError('READ_NOT_SYNCHRONOUS', {
    op: 'exit',
    message: `'${path}' lacks ${lost[0]}${more}: the thread ends while another device computes`,
    remedy: 'Await close() of the MetricsWriter before the program ends.',
    values: { path },
  })
}

export function closed(op: string, path: string): PostgradError {
  return new PostgradError('METRICS_CLOSED', {
    op,
    expected: `an open writer of '${path}'`,
    got: 'one that was closed',
    remedy: 'Write before close(), or before the block of `await using` ends.',
    values: { path },
  })
}
