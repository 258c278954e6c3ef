/** A server for the built site, for one reader on this machine: files, compressed as a public server would send them. */
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize, sep } from 'node:path'
import { pipeline } from 'node:stream'
import { createGzip } from 'node:zlib'

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
}
const PORT = 4173

/** Resolves with the address. Without a port it takes the first free one from 4173 on. */
export async function serve(folder, port) {
  const server = createServer((request, response) => answer(folder, request, response))
  for (let next = port ?? PORT; ; next++) {
    try {
      await listening(server, next)
      return { server, address: `http://127.0.0.1:${server.address().port}/` }
    } catch (error) {
      if (error.code !== 'EADDRINUSE' || port !== undefined) throw explained(error, next)
    }
  }
}

/** The server answers any address, and stays. */
export async function proveServing(folder) {
  const { server, address } = await serve(folder, 0)
  try {
    for (const [path, expected] of [
      ['', 200],
      ['%00', 404],
      ['%', 404],
      ['x'.repeat(300), 404],
      ['%2e%2e/%2e%2e/package.json', 404],
      ['', 200],
    ]) {
      const { status } = await fetch(`${address}${path}`)
      if (status !== expected) throw new Error(`site: the server answers /${path} with ${status} and not with ${expected}`)
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

function listening(server, port) {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function explained(error, port) {
  if (error.code !== 'EADDRINUSE') return error
  return new Error(`port ${port} is in use by another program.\n  Remedy: npm run docs:serve -- --port ${port + 1}`, { cause: error })
}

function answer(folder, request, response) {
  const path = fileOf(folder, request.url)
  if (path === undefined) return notFound(folder, request, response)
  const type = TYPES[extname(path)] ?? 'application/octet-stream'
  const compress = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '') && type !== TYPES['.png']
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', ...(compress ? { 'content-encoding': 'gzip' } : {}) })
  if (request.method === 'HEAD') return response.end()
  send([createReadStream(path), ...(compress ? [createGzip()] : []), response])
}

function notFound(folder, request, response) {
  const path = fileOf(folder, '/404.html')
  response.writeHead(404, { 'content-type': path === undefined ? TYPES['.txt'] : TYPES['.html'] })
  if (request.method === 'HEAD') return response.end()
  if (path === undefined) return response.end('Not found.\n')
  send([createReadStream(path), response])
}

/** A file that cannot be read, as while a new build replaces it, and a browser that leaves end this response alone. */
function send(streams) {
  pipeline(streams, () => {})
}

/** The file that an address means, inside the folder: '/guide/' is guide/index.html, '/guide/launching' is guide/launching.html. Undefined: none. */
function fileOf(folder, url) {
  let address
  try {
    address = decodeURIComponent(url.split(/[?#]/)[0])
  } catch {
    return undefined // not an address
  }
  const path = normalize(join(folder, address))
  if (path !== folder && !path.startsWith(folder + sep)) return undefined
  return [path, join(path, 'index.html'), `${path}.html`].find(isFile)
}

function isFile(path) {
  try {
    return statSync(path).isFile()
  } catch {
    return false // also of a path that no file can have: too long, or with a zero byte
  }
}
