/** Errors of metrics files. Each names the file. */
import { PostgradError } from '@postgrad/base'
import { tooManyOpenFiles } from '@postgrad/base/internal'

export function ioFailure(op: string, what: 'read' | 'write', path: string, cause: unknown): PostgradError {
  return new PostgradError('METRICS_IO', {
    op,
    message: `cannot ${what} '${path}': ${(cause as { message?: unknown })?.message ?? String(cause)}`,
    remedy: tooManyOpenFiles(op, cause)?.remedy ?? remedyOf((cause as { code?: unknown })?.code, what),
    values: { path },
    cause,
  })
}

function remedyOf(code: unknown, what: 'read' | 'write'): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `A relative path counts from the working directory, ${process.cwd()}.`
    case 'EISDIR':
      return 'It is a folder: name a file in it.'
    case 'EACCES':
    case 'EPERM':
      return 'Look at the permissions of the file and of its folder.'
    case 'ENOSPC':
      return 'The disk is full. The lines that are not written are still in memory: make room, and call flush() again.'
    default:
      return what === 'write' ? 'See the cause. The lines that are not written are still in memory.' : 'See the cause.'
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

export function closed(op: string, path: string): PostgradError {
  return new PostgradError('METRICS_CLOSED', {
    op,
    expected: `an open writer of '${path}'`,
    got: 'one that was closed',
    remedy: 'Write before close(), or before the block of `await using` ends.',
    values: { path },
  })
}
