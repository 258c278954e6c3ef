/** A program that listens and has nothing else to do. */
import { RealClock } from '../clock.js'
import { formatAddress } from './address.js'
import { Exchange } from './exchange.js'

const exchange = new Exchange({ self: { cluster: 'c', name: 'w', id: 1 }, credentials: null, clock: new RealClock() })
const [address] = await exchange.listen([{ kind: 'tcp', host: '127.0.0.1', port: 0 }])
exchange.link({ name: 'other', id: 2 }, () => [])
console.log(`listening on ${formatAddress(address!)}`)
