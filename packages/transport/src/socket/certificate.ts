/**
 * The identity in a certificate: the URI `postgrad:<cluster>/<name>?role=<role>` among its alternative names, with `&id=<id>` if it is for one life of a
 * worker. `*` as the name means any worker of that cluster: the processes of one machine may share such a certificate. `handshake.ts` compares the claim
 * of the other end with it.
 */
import { PostgradError } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import { type Identity, isClusterName, isRole, isWorkerName } from './credentials.js'

/** The identity in a certificate; null for a part it leaves open. */
export interface CertificateIdentity {
  readonly cluster: string
  readonly name: string | null
  readonly role: string
  readonly id: number | null
}

const URI = /^postgrad:([^/?&#%]+)\/([^/?&#%]+)\?role=([^&#%]+)(?:&id=(0|[1-9]\d{0,4}))?$/
/** One alternative name as Node writes it; in quotes where it holds what could be taken for two. */
const ENTRY = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y

/**
 * The identity in a certificate from `tlsSocket.getPeerCertificate()`.
 * @throws AUTH_FAILED if it has none, or more than one.
 */
export function tlsIdentity(certificate: { readonly subjectaltname?: string | undefined }): CertificateIdentity {
  const uris = urisOf(certificate.subjectaltname ?? '').filter((uri) => uri.startsWith('postgrad:'))
  const [uri] = uris
  const identity = uris.length === 1 && uri !== undefined ? identityOf(uri) : null
  if (identity === null) {
    throw new PostgradError('AUTH_FAILED', {
      op: 'certificate',
      expected: "one alternative name of the form 'URI:postgrad:<cluster>/<name>?role=<role>'",
      got: uris.length === 0 ? 'none' : uris.length === 1 ? 'another form' : `${uris.length}`,
      remedy: 'Have a certificate signed that names the worker so.',
      values: { reason: 'certificate' },
    })
  }
  return identity
}

/** The part of the claim that differs from the certificate; null if none does. */
export function certificateMismatch(certificate: CertificateIdentity, claim: Identity): 'cluster' | 'name' | 'role' | 'id' | null {
  if (certificate.cluster !== claim.cluster) return 'cluster'
  if (certificate.name !== null && certificate.name !== claim.name) return 'name'
  if (certificate.role !== claim.role) return 'role'
  if (certificate.id !== null && certificate.id !== claim.id) return 'id'
  return null
}

/** The subject of the certificate, for whom budgets count. */
export function subjectOf({ cluster, name, role, id }: CertificateIdentity): string {
  return `postgrad:${cluster}/${name ?? '*'}?role=${role}${id === null ? '' : `&id=${id}`}`
}

function identityOf(uri: string): CertificateIdentity | null {
  const [, cluster, name, role, id] = URI.exec(uri) ?? []
  if (!isClusterName(cluster) || !(name === '*' || isWorkerName(name)) || !isRole(role)) return null
  if (id !== undefined && Number(id) > WORKER_ID_MAX) return null
  return { cluster, name: name === '*' ? null : name, role, id: id === undefined ? null : Number(id) }
}

/** The URIs in Node's text of the alternative names. Empty if that is not understood to its end: then nothing of it is believed. */
function urisOf(text: string): string[] {
  const uris: string[] = []
  ENTRY.lastIndex = 0
  while (ENTRY.lastIndex < text.length) {
    const [, kind, value] = ENTRY.exec(text) ?? []
    if (kind === undefined || value === undefined) return []
    // Node puts a name in quotes if it needs them. Our URIs never do, so that is not one.
    if (kind === 'URI' && !value.startsWith('"')) uris.push(value)
  }
  return uris
}
