import { execFileSync } from 'node:child_process'
import { rmSync, statfsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

/** A small disk, mounted over a directory; it can be filled to the brim and emptied again. */
export function mountSmallDisk(dir: string, megabytes: number) {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0711`, 'tmpfs', dir])
  const filler = join(dir, 'filler')
  return {
    /** But for so much. */
    async fill(leaveBytes = 0) {
      const file = await open(filler, 'a')
      try {
        for (;;) {
          const { bavail, bsize } = statfsSync(dir)
          const bytes = Math.min(1024 * 1024, bavail * bsize - leaveBytes)
          if (bytes <= 0) return
          await file.write(Buffer.alloc(bytes))
        }
      } catch {
        // Full, a moment before we knew.
      } finally {
        await file.close()
      }
    },
    empty: () => rmSync(filler, { force: true }),
    unmount() {
      execFileSync('umount', ['-l', dir])
    },
  }
}
