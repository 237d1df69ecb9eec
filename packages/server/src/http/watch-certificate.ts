import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Logger } from '../runtime/logger.ts'

const pollMs = 2000

/**
 * A renewed certificate serves new connections without a restart. Files are polled, because renewals often swap a
 * symbolic link or a directory. One that does not fit is refused, and the one before stays.
 */
export function watchCertificate(deps: { server: Server; certFile: string; keyFile: string; log: Logger }) {
  const { server, certFile, keyFile, log } = deps
  const files = [certFile, keyFile]

  const reload = () => {
    try {
      if (!(server instanceof TlsServer)) throw new Error('This server does not speak TLS')
      server.setSecureContext({ cert: readFileSync(certFile), key: readFileSync(keyFile) })
      log.info('the certificate was read again')
    } catch (error) {
      log.error({ err: error }, 'the changed certificate cannot be used; the one before stays')
    }
  }

  for (const file of files) watchFile(file, { interval: pollMs, persistent: false }, reload)
  return () => {
    for (const file of files) unwatchFile(file, reload)
  }
}
