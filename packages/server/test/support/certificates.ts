import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type CertificateFiles = { cert: string; key: string }

/** Makes certificate authorities and certificates with openssl, as files of a directory. */
export function makeCertificates(dir: string) {
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const toFiles = (name: string): CertificateFiles => ({
    cert: join(dir, `${name}.crt`),
    key: join(dir, `${name}.key`),
  })

  return {
    /** Creates an authority, whose certificate clients or servers are checked against. */
    newAuthority(name: string): CertificateFiles {
      const { cert, key } = toFiles(name)
      run('req', '-x509', ...newKey, '-keyout', key, '-out', cert, '-subj', `/CN=${name}`, '-days', '30')
      return { cert, key }
    },
    /** Creates a certificate of an authority. `days` may be negative for one that has expired. */
    issue(
      ca: CertificateFiles,
      file: string,
      { subject = `/CN=${file}`, names = '', days = 30 } = {},
    ): CertificateFiles {
      const { cert, key } = toFiles(file)
      const request = join(dir, `${file}.csr`)
      run('req', ...newKey, '-keyout', key, '-out', request, '-subj', subject)
      const extensions = join(dir, `${file}.ext`)
      writeFileSync(extensions, names === '' ? '' : `subjectAltName=${names}\n`)
      const signed = [
        '-CA',
        ca.cert,
        '-CAkey',
        ca.key,
        '-CAcreateserial',
        '-days',
        String(days),
        '-extfile',
        extensions,
      ]
      run('x509', '-req', '-in', request, '-out', cert, ...signed)
      return { cert, key }
    },
  }
}

/** Makes a certificate authority in a directory, and returns a function that signs certificates by it. */
export function makeAuthority(dir: string) {
  const { newAuthority, issue } = makeCertificates(dir)
  const ca = newAuthority('ca')
  return {
    ca: ca.cert,
    /** `names` are alternative names such as `IP:127.0.0.1`. */
    sign: (name: string, names: string) => issue(ca, name, { names }),
  }
}
