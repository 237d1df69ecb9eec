import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const openssl = 'openssl'

const run = (args: string[]) => execFileSync(openssl, args, { stdio: 'ignore' })
const newKey = (file: string) => [
  '-newkey',
  'ec',
  '-pkeyopt',
  'ec_paramgen_curve:prime256v1',
  '-nodes',
  '-keyout',
  file,
]

/** Makes a certificate authority in a directory, and returns a function that signs certificates by it. */
export function makeAuthority(dir: string) {
  const [ca, caKey] = [join(dir, 'ca.pem'), join(dir, 'ca.key')]
  run(['req', '-x509', ...newKey(caKey), '-out', ca, '-days', '2', '-subj', '/CN=test authority'])
  return {
    ca,
    /** `names` are alternative names such as `IP:127.0.0.1`. */
    sign(name: string, names: string) {
      const [cert, key, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((end) => join(dir, `${name}.${end}`))
      if (!(cert && key && request && extensions)) throw new Error('unreachable')
      run(['req', ...newKey(key), '-out', request, '-subj', `/CN=${name}`])
      writeFileSync(extensions, `subjectAltName=${names}`)
      const signed = ['-CA', ca, '-CAkey', caKey, '-CAcreateserial', '-days', '2', '-extfile', extensions]
      run(['x509', '-req', '-in', request, ...signed, '-out', cert])
      return { cert, key }
    },
  }
}
