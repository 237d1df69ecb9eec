import { unwatchFile, watchFile } from 'node:fs'
import type { Logger } from './logger.ts'

const pollMs = 2000

type Deps = {
  /** The files whose changes count. */
  files: readonly string[]
  /** Reads the files and makes the server use them. Throws when they cannot be used. */
  apply(): void
  log: Logger
}

/**
 * Applies a renewed certificate to new connections without a restart. Files are polled, because renewals often replace a
 * symbolic link or a directory. After a certificate that cannot be used, the server continues with the previous one.
 */
export function watchCertificate({ files, apply, log }: Deps) {
  const reload = () => {
    try {
      apply()
      log.info({ files }, 'certificate reloaded')
    } catch (error) {
      log.error({ err: error, files }, 'the changed certificate cannot be used; the previous one stays in use')
    }
  }

  for (const file of files) watchFile(file, { interval: pollMs, persistent: false }, reload)
  return () => {
    for (const file of files) unwatchFile(file, reload)
  }
}
