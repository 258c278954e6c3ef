/** TLS 1.3 with certificates at both ends, around sockets that are connected already. `certificate.ts` reads who they belong to. */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import { type CertificateIdentity, tlsIdentity } from './certificate.js'
import type { TlsCredentials } from './credentials.js'

const tls = () => builtin<typeof import('node:tls')>('node:tls')

/** Calls one of the two, once. Who is at the other end is checked by the handshake, against the certificate: host names say nothing here. */
export function secure(
  socket: Socket,
  side: 'dialler' | 'listener',
  { ca, cert, key }: TlsCredentials,
  onSecure: (secured: TLSSocket, peer: CertificateIdentity) => void,
  onFailed: (error: Error) => void,
): void {
  let isOver = false
  const failed = (error: Error): void => {
    if (isOver) return
    isOver = true
    socket.destroy()
    onFailed(isOfSystem(error) ? error : tlsRefused(error))
  }
  const secured = (made: TLSSocket): void => {
    if (isOver) return
    try {
      const peer = tlsIdentity(made.getPeerCertificate())
      isOver = true
      onSecure(made, peer)
    } catch (error) {
      failed(error as Error)
    }
  }
  const shared = { ca, cert, key, minVersion: 'TLSv1.3', rejectUnauthorized: true } as const
  socket.on('error', failed)
  socket.on('close', () =>
    failed(Object.assign(new Error('the connection was closed during the handshake of TLS'), { code: 'ECONNRESET' })),
  )
  if (side === 'dialler') {
    const made = tls().connect({ ...shared, socket, checkServerIdentity: () => undefined })
    made.on('error', failed)
    made.on('secureConnect', () => secured(made))
    return
  }
  // A server of its own for each: it says which of its sockets it was.
  const server = tls().createServer({ ...shared, requestCert: true }, secured)
  server.on('tlsClientError', failed)
  server.emit('connection', socket)
}

/** What the network said, not TLS. */
const isOfSystem = (error: Error): boolean =>
  isPostgradError(error) || (error as NodeJS.ErrnoException).syscall !== undefined || codeOf(error) === 'ECONNRESET'

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code

/** Whether an error on a socket is one of TLS: the other end may not have liked this one's certificate. */
export const isOfTls = (error: unknown): boolean => /^ERR_(SSL|TLS)_/.test(String(codeOf(error)))

export function tlsRefused(error: Error): PostgradError {
  return new PostgradError('AUTH_FAILED', {
    op: 'connect',
    message: `TLS refused: ${codeOf(error) ?? error.message}`,
    remedy: 'Both ends need certificates that the authority in `ca` has signed, and both must use TLS.',
    cause: error,
    values: { reason: 'certificate', code: codeOf(error) },
  })
}

/** Who a certificate of one's own says that one is. */
export function ownIdentity({ cert }: TlsCredentials): CertificateIdentity {
  const { X509Certificate } = builtin<typeof import('node:crypto')>('node:crypto')
  return tlsIdentity({ subjectaltname: new X509Certificate(cert).subjectAltName })
}
