import { randomFillSync } from 'node:crypto'

const pool = Buffer.allocUnsafeSlow(16 * 1024)
let used = pool.length

/** Random bytes for keys, nonces and ids. Drawn in bulk, because a system call for each costs more than its use. */
export function drawRandom(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const drawn = Buffer.from(pool.subarray(used, used + bytes))
  pool.fill(0, used, used + bytes)
  used += bytes
  return drawn
}
