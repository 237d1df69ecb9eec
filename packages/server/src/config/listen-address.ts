import type { Reader } from './readers.ts'

/** The kernel takes no longer paths for unix sockets. */
const maxSocketPathBytes = 107

/** An address to listen on: an address and a port, a port on 127.0.0.1, or the path of a unix socket. */
export const listenAddress: Reader<{ host: string; port: number } | { path: string }> = (value) => {
  const [, path] = /^unix:(?:\/\/)?(\/(?!\/).*[^/])$/.exec(value) ?? []
  if (path !== undefined) {
    if (Buffer.byteLength(path) > maxSocketPathBytes) {
      throw new Error(`must have a path of at most ${maxSocketPathBytes} bytes, the limit of Linux for unix sockets`)
    }
    return { path }
  }
  const [, v6, name, digits] = /^(?:tcp:\/\/)?(?:(?:\[([0-9a-f:.]+)\]|([\w.-]+)):)?(\d{1,5})$/i.exec(value) ?? []
  if (digits === undefined || Number(digits) > 65535) {
    throw new Error('must be a port such as 3310, an address such as tcp://0.0.0.0:3310, or unix:/run/assay/clamd.sock')
  }
  return { host: v6 ?? name ?? '127.0.0.1', port: Number(digits) }
}
