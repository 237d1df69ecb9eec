import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Library of Debian's package faketime that gives a process another wall clock. */
const faketimeLibrary = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`

/** Returns the reason to skip tests that need libfaketime, or false. As root `npm test` installs it. */
export const lacksFaketime = (): string | false =>
  !existsSync(faketimeLibrary) && 'faketime is not installed: apt-get install faketime'

/**
 * A wall clock that differs from the machine's by an offset such as `-40d`, for the programs that run with `env`. The
 * monotonic clock, which timers use, is the machine's: no wrong setting of the time changes that one.
 */
export function openFakeClock(offset: string) {
  const lack = lacksFaketime()
  if (lack !== false) throw new Error(lack)
  const dir = mkdtempSync(join(tmpdir(), 'assay-clock-'))
  // PostgreSQL reads the file as a user of its own.
  chmodSync(dir, 0o755)
  const file = join(dir, 'offset')
  const set = (next: string) => writeFileSync(file, next)
  set(offset)
  return {
    env: {
      LD_PRELOAD: faketimeLibrary,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    /** Changes the offset while the programs run. */
    set,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

export type FakeClock = ReturnType<typeof openFakeClock>

/** The program that starts another one on this clock, as `under` of `startService`. */
export const toRunner = ({ env }: FakeClock): string[] => ['env', ...Object.entries(env).map(([k, v]) => `${k}=${v}`)]
