import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'

/** Random bytes are drawn in bulk: one by one they cost more than all the rest of a number. */
const pool = Buffer.alloc(16 * 256)
let used = pool.length

/** A number that begins with the time, so that rows of one time lie together. */
export function newScanId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.subarray(used, used + 16)
  used += 16
  return v7({ random })
}
