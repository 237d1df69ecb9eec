type Detachable = ArrayBuffer & { transfer(bytes: number): ArrayBuffer }

const minFreedBytes = 16 * 1024

/** Whether the buffer is all of its memory, so that no other buffer can be a part of it. */
export const isWholeMemory = ({ buffer, byteLength }: Buffer): boolean => byteLength === buffer.byteLength

/**
 * Frees the memory of a buffer at once; the buffer is empty afterwards. The garbage collector sees only the small
 * object in front of that memory, so it runs late and long: with content of 10 MB it took more than half of the
 * service's time and twice the memory. A buffer that shares its memory with others is left alone.
 */
export function freeBuffer(buffer: Buffer) {
  const memory = buffer.buffer as Detachable
  if (memory.byteLength >= minFreedBytes && isWholeMemory(buffer)) memory.transfer(0)
}

/** Frees the whole memory that a buffer is a part of. Call it only when no other buffer uses that memory. */
export function freeMemory(buffer: Buffer) {
  const memory = buffer.buffer as Detachable
  // Memory of this size may be the pool from which Node takes all small buffers.
  if (memory.byteLength === Buffer.poolSize) freeBuffer(buffer)
  else if (memory.byteLength >= minFreedBytes) memory.transfer(0)
}
