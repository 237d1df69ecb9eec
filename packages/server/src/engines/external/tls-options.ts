import { createSecureContext } from 'node:tls'
import type { OptionReader } from '../../runtime/toml-options.ts'

/** Options of a TLS connection, as `tls.connect` takes them. */
export type TlsOptions = { ca?: string; cert?: string; key?: string; servername?: string }

const pem = /-----BEGIN [A-Z ]+-----/

/**
 * Reads `ca_file`, `cert_file`, `key_file` and `servername`. The certificate of the server is always checked: against the
 * file, or against the authorities that Node knows.
 */
export function readTlsOptions(options: OptionReader): TlsOptions {
  const ca = options.file('ca_file')
  const cert = options.file('cert_file')
  const key = options.secret('key', pem, 'must be a private key in PEM form')
  const servername = options.text('servername')
  if ((cert === undefined) !== (key === undefined)) {
    options.note('cert_file', 'and key_file go together: set both or neither')
    return {}
  }
  const found = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
  }
  try {
    createSecureContext(found)
  } catch (error) {
    options.note('ca_file', `and the other files for TLS cannot be used: ${(error as Error).message}`)
  }
  return found
}
