/** Credentials of the two ends, for rows that measure what authentication costs: a shared key, or certificates of an authority made for the run. */
import type { Credentials } from '@postgrad/transport/internal'

export type Proof = 'none' | 'key' | 'tls'

/** Of the tests of transport, which compile it; it is named here and not imported, since product code has no use for an authority. */
const AUTHORITY = new URL('../../../../packages/transport/dist/socket/certificates.fixture.js', import.meta.url)
const ROLE = 'member'
const KEY_BYTES = 32

interface Signs {
  credentials(uri: string): Credentials
}

/** Those of each named worker, in a cluster of that name. */
export async function credentialsOf(proof: Proof, cluster: string, names: readonly string[]): Promise<(Credentials | null)[]> {
  if (proof === 'none') return names.map(() => null)
  if (proof === 'key') {
    const key = crypto.getRandomValues(new Uint8Array(KEY_BYTES))
    return names.map(() => ({ kind: 'key', role: ROLE, keys: { [ROLE]: key } }))
  }
  const { Authority } = (await import(AUTHORITY.href)) as { readonly Authority: new (name: string) => Signs }
  const authority = new Authority(cluster)
  return names.map((name) => authority.credentials(`postgrad:${cluster}/${name}?role=${ROLE}`))
}
