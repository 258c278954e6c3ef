/**
 * The checksum of a DATA chunk: the first four bytes of the GMAC (AES-128-GCM, which encrypts nothing here, with a key and a nonce of zeros) of the head after the checksum and of the
 * body. Like a CRC it does not prove the sender; processors have instructions for both halves of it, so it takes two thirds of a CRC-32's time.
 */
import type { CipherGCM } from 'node:crypto'
import { builtin } from '@postgrad/base/internal'

const ALGORITHM = 'aes-128-gcm'
const KEY = new Uint8Array(16)
const NONCE = new Uint8Array(12)

/** One chunk after another: `begin`, `add` for each piece of the body, `end`. */
export class DataSum {
  // Not at load: a worker without a socket loads no crypto.
  private readonly crypto = builtin<typeof import('node:crypto')>('node:crypto')
  private mac: CipherGCM | null = null

  begin(head: Uint8Array): void {
    this.mac = this.crypto.createCipheriv(ALGORITHM, KEY, NONCE)
    this.mac.setAAD(head)
  }

  add(bytes: Uint8Array): void {
    this.mac!.setAAD(bytes)
  }

  end(): number {
    const mac = this.mac!
    this.mac = null
    mac.final()
    return mac.getAuthTag().readUInt32LE(0)
  }
}
