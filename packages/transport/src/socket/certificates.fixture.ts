/** Certificates for tests, made when they are needed: an authority, and workers that it signs. Node reads X.509 and writes none, so the few fields are written here. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { TlsCredentials } from './credentials.js'

const tlv = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  const { length } = body
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}
const sequence = (...parts: Uint8Array[]) => tlv(0x30, ...parts)
const oid = (hex: string) => tlv(0x06, Buffer.from(hex, 'hex'))
const time = (text: string) => tlv(0x18, Buffer.from(text))
const bits = (bytes: Uint8Array) => tlv(0x03, Buffer.from([0]), bytes)
const named = (name: string) => sequence(tlv(0x31, sequence(oid('550403'), tlv(0x0c, Buffer.from(name)))))
const extension = (id: string, value: Uint8Array) => sequence(oid(id), tlv(0x04, value))
const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'))

export class Authority {
  readonly pem: string
  private readonly name: string
  private readonly keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  private serial = 1

  constructor(name: string) {
    this.name = name
    // It may sign others: basicConstraints, CA true.
    this.pem = this.certify(name, this.keys.publicKey, extension('551d13', sequence(tlv(0x01, Buffer.from([0xff])))))
  }

  /** Credentials of one that this authority knows under the URI. */
  credentials(uri: string): TlsCredentials {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const cert = this.certify('worker', publicKey, extension('551d11', sequence(tlv(0x86, Buffer.from(uri)))))
    return { kind: 'tls', ca: this.pem, cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
  }

  private certify(subject: string, key: KeyObject, extensionOfIt: Uint8Array): string {
    const body = sequence(
      tlv(0xa0, tlv(0x02, Buffer.from([2]))),
      tlv(0x02, Buffer.from([this.serial++])),
      ECDSA_SHA256,
      named(this.name),
      sequence(time('20200101000000Z'), time('21200101000000Z')),
      named(subject),
      key.export({ type: 'spki', format: 'der' }),
      tlv(0xa3, sequence(extensionOfIt)),
    )
    const signature = sign('sha256', body, this.keys.privateKey)
    const base64 = sequence(body, ECDSA_SHA256, bits(signature)).toString('base64')
    return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`
  }
}
