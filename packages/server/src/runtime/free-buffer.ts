type Detachable = ArrayBuffer & { transfer(bytes: number): ArrayBuffer }

const worthBytes = 16 * 1024

/**
 * Gives the memory of a buffer back at once, instead of when the garbage collector comes by: whoever has it finds it empty.
 * The collector sees only the small object in front of such memory, runs far too late and then for long: for 10 MB of
 * content it took more than half of the service's time, and twice the memory. What shares its memory with others is left
 * alone.
 */
export function freeBuffer(buffer: Buffer) {
  const memory = buffer.buffer as Detachable
  if (memory.byteLength >= worthBytes && buffer.byteLength === memory.byteLength) memory.transfer(0)
}

/** Also what the buffer is only a part of: for whoever knows that nobody needs the rest. */
export function freeMemory(buffer: Buffer) {
  const memory = buffer.buffer as Detachable
  // It may be what Node cuts small buffers from, which has this size: then strangers have the rest.
  if (memory.byteLength === Buffer.poolSize) freeBuffer(buffer)
  else if (memory.byteLength >= worthBytes) memory.transfer(0)
}
