import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import type { PostgresTls } from '../runtime/postgres-url.ts'

/**
 * Reads the certificates again for each connection, so that renewed ones are used. A file that cannot be read later,
 * for example while it is being replaced, leaves the last ones in use.
 */
export function makeTlsReader(tls: PostgresTls | undefined): () => ConnectionOptions | false {
  if (tls === undefined) return () => false
  const readFile = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file, 'utf8'))
  const read = (): ConnectionOptions => {
    const options: ConnectionOptions = { rejectUnauthorized: tls.verify !== 'none' }
    // The driver takes a key that is present and undefined for a key.
    const [ca, crl, cert, key] = [tls.caFile, tls.crlFile, tls.certFile, tls.keyFile].map(readFile)
    if (ca !== undefined) options.ca = ca
    if (crl !== undefined) options.crl = crl
    if (cert !== undefined) options.cert = cert
    if (key !== undefined) options.key = key
    if (tls.keyPassword !== undefined) options.passphrase = tls.keyPassword
    if (tls.verify === 'ca') options.checkServerIdentity = () => undefined
    return options
  }
  let last = read()
  return () => {
    try {
      last = read()
    } catch {
      // The next connection tries again.
    }
    return last
  }
}
