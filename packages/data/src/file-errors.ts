/** Errors for files that cannot be read or written: each names the path and says what to do. Used by `csv.ts` and `idx.ts`. */
import { cwd } from 'node:process'
import { PostgradError } from '@postgrad/base'
import { tooManyOpenFiles } from '@postgrad/base/internal'
import { invalidArgument } from '@postgrad/tensor/internal'

/** @throws INVALID_ARGUMENT unless it names a file */
export function checkPath(op: string, path: unknown): asserts path is string | URL {
  if (typeof path === 'string' || (path instanceof URL && path.protocol === 'file:')) return
  throw invalidArgument(op, 'a path, or a file: URL', path instanceof URL ? path.href : path === null ? 'null' : typeof path)
}

/** Whether the file system failed, and not the decoding. */
export function isOfFileSystem(error: unknown): boolean {
  return typeof (error as { syscall?: unknown } | null)?.syscall === 'string'
}

export function ioFailure(
  code: 'CSV_IO' | 'IDX_IO',
  op: string,
  what: 'read' | 'write',
  path: string | URL,
  cause: unknown,
): PostgradError {
  return new PostgradError(code, {
    op,
    message: `cannot ${what} '${String(path)}': ${(cause as { message?: unknown })?.message ?? String(cause)}`,
    remedy: tooManyOpenFiles(op, cause)?.remedy ?? remedyOf((cause as { code?: unknown })?.code),
    values: { path: String(path) },
    cause,
  })
}

function remedyOf(code: unknown): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `A relative path counts from the working directory, ${cwd()}. new URL('./file', import.meta.url) counts from the module.`
    case 'EISDIR':
      return 'It is a folder: name a file in it.'
    case 'EACCES':
    case 'EPERM':
      return 'Look at the permissions of the file and of its folder.'
    default:
      return 'See the cause.'
  }
}
