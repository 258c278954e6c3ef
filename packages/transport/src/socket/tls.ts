/**
 * TLS 1.3 with certificates at both ends, around the sockets of `listener.ts` and `dialler.ts`. `certificate.ts` reads identities.
 *
 * Note [What is parsed once]. Certificates and key are parsed once for an exchange; for each connection they would take nearly half of its time. So all accepted
 * connections have one server, which checks certificates as Node does. `_parent`, a field of Node's own, has the socket that one of its connections is around. If it
 * were missing, no connection would be let in.
 *
 * Note [No tickets]. A server that lives on could resume a session, and then asks for no certificate: so it gives out no tickets. Each connection shows its
 * certificate.
 */
import type { Socket } from 'node:net'
import type { SecureContext, Server, TLSSocket } from 'node:tls'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'
import { type CertificateIdentity, tlsIdentity } from './certificate.js'
import { credentialsInvalid, type TlsCredentials } from './credentials.js'

const tls = () => builtin<typeof import('node:tls')>('node:tls')

/** The callbacks of a TLS handshake. */
interface Outcome {
  readonly secured: (made: TLSSocket) => void
  readonly failed: (error: Error) => void
}

/** Both ends of the connections of one exchange. */
export class TlsEnds {
  private readonly options: object
  private readonly context: SecureContext
  private server: Server | null = null
  /** By the sockets that were accepted. */
  private readonly outcomes = new WeakMap<object, Outcome>()

  /** @throws CREDENTIALS_INVALID */
  constructor({ ca, cert, key }: TlsCredentials) {
    const { constants } = builtin<typeof import('node:crypto')>('node:crypto')
    this.options = { ca, cert, key, minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET }
    try {
      this.context = tls().createSecureContext(this.options)
    } catch (error) {
      throw credentialsInvalid(
        'certificates, and the key of `cert`, that TLS can read',
        String(codeOf(error) ?? 'something else'),
        'Check that `key` belongs to `cert`, and that no passphrase protects it.',
      )
    }
  }

  /** Calls one of the two, once. The handshake checks the other end against the certificate: host names mean nothing here. */
  secure(
    socket: Socket,
    side: 'dialler' | 'listener',
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
    socket.on('error', failed)
    socket.on('close', () =>
      failed(Object.assign(new Error('the connection was closed during the handshake of TLS'), { code: 'ECONNRESET' })),
    )
    if (side === 'listener') {
      this.outcomes.set(socket, { secured, failed })
      this.server ??= this.createServer()
      this.server.emit('connection', socket)
      return
    }
    const { context } = this
    const made = tls().connect({ socket, secureContext: context, rejectUnauthorized: true, checkServerIdentity: () => undefined })
    made.on('error', failed)
    made.on('secureConnect', () => secured(made))
  }

  /** It listens nowhere. */
  private createServer(): Server {
    const server = tls().createServer({ ...this.options, requestCert: true, rejectUnauthorized: true })
    server.on('secureConnection', (made) => {
      const outcome = this.outcomeOf(made)
      if (outcome === undefined) made.destroy()
      else outcome.secured(made)
    })
    server.on('tlsClientError', (error, made) => {
      made.destroy()
      this.outcomeOf(made)?.failed(error)
    })
    return server
  }

  private outcomeOf(made: TLSSocket): Outcome | undefined {
    const { _parent: parent } = made as unknown as { readonly _parent?: object }
    return parent === undefined ? undefined : this.outcomes.get(parent)
  }
}

/** An error of the network, not of TLS. */
const isOfSystem = (error: Error): boolean =>
  isPostgradError(error) || (error as NodeJS.ErrnoException).syscall !== undefined || codeOf(error) === 'ECONNRESET'

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code

/** Whether an error on a socket is one of TLS: the other end may not have liked this one's certificate. */
export const isOfTls = (error: unknown): boolean => /^ERR_(SSL|TLS)_/.test(String(codeOf(error)))

export function tlsRefused(error: Error): PostgradError {
  return new PostgradError('AUTH_FAILED', {
    op: 'connect',
    message: `TLS refused: ${codeOf(error) ?? error.message}`,
    remedy:
      'Both ends must use TLS, with certificates that the authority in `ca` has signed and that are valid now. Check their dates, and the clocks of both machines.',
    cause: error,
    values: { reason: 'certificate', code: codeOf(error) },
  })
}

/** The identity in this end's own certificate. */
export function ownIdentity({ cert }: TlsCredentials): CertificateIdentity {
  const { X509Certificate } = builtin<typeof import('node:crypto')>('node:crypto')
  return tlsIdentity({ subjectaltname: new X509Certificate(cert).subjectAltName })
}
