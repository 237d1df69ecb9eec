import type { Socket } from 'node:net'

/** Collects what a socket receives, and tells whether the other side has reset it. */
export function watchSocket<T extends Socket>(socket: T) {
  let text = ''
  let fault: NodeJS.ErrnoException | undefined
  socket
    .on('error', (error) => {
      fault ??= error
    })
    .on('data', (chunk) => {
      text += chunk
    })
  return { socket, heard: () => text, isReset: () => fault?.code === 'ECONNRESET' }
}
