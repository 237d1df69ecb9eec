import { execFileSync } from 'node:child_process'
import { rmSync, statfsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

/** Mounts a small disk over a directory, which can be filled completely and emptied again. */
export function mountSmallDisk(dir: string, megabytes: number) {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0711`, 'tmpfs', dir])
  const filler = join(dir, 'filler')
  return {
    /** Fills the disk except for this many bytes. */
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
        // The disk became full between the check and the write.
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
