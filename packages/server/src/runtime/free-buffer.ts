type Detachable = ArrayBuffer & { transfer(bytes: number): ArrayBuffer }

/** Never what small buffers share. */
const worthBytes = Math.max(16 * 1024, Buffer.poolSize + 1)

/**
 * Gives the memory of a buffer back at once, instead of when the garbage collector comes by: whoever has it finds it empty.
 * The collector sees only the small object in front of such memory, runs far too late and then for long: for 10 MB of
 * content it took more than half of the service's time, and twice the memory. What shares its memory with others is left
 * alone.
 */
export function freeBuffer(buffer: Buffer) {
  if (buffer.byteLength === buffer.buffer.byteLength) freeMemory(buffer)
}

/** Also what the buffer is only a part of: for whoever knows that nobody needs the rest. */
export function freeMemory({ buffer }: Buffer) {
  if (buffer.byteLength >= worthBytes) (buffer as Detachable).transfer(0)
}
