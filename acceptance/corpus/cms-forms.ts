import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deflateSync } from 'node:zlib'
import type { Form } from './form.ts'
import { attach, breakLines, textPart, toBase64Lines, writeMail } from './mail-writer.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'

const cmsForm = formsOf({ family: 'cms', needs: ['openssl'], extractors: ['openssl cms', 'munpack and openssl'] })

const certificates = fileURLToPath(new URL('../support/certificates/', import.meta.url))
const certificate = join(certificates, 'first.crt')
const signer = ['-signer', certificate, '-inkey', join(certificates, 'first.key'), '-nosmimecap']
const key = '00112233445566778899aabbccddeeff'

const runCms = (workdir: string, command: string, ...args: string[]) =>
  runAndRead(workdir, 'out', 'openssl', command, '-binary', '-in', 'payload.com', '-out', 'out', ...args)

const encrypt =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    runCms(workdir, 'cms', '-encrypt', ...args, certificate)

let rsaCertificate: Buffer | undefined

/** Makes an RSA certificate once for all samples of this process. */
function makeRsaCertificate(workdir: string): Buffer {
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=Ann', '-keyout', '/dev/null']
  rsaCertificate ??= runAndRead(workdir, 'rsa.crt', 'openssl', ...args, '-out', 'rsa.crt')
  return rsaCertificate
}

/** Encrypts for an RSA key, which is the usual kind and the only one that the older command knows. */
const encryptForRsa =
  (command: string, ...args: string[]): Build =>
  (_payload, workdir) => {
    writeFileSync(join(workdir, 'recipient.crt'), makeRsaCertificate(workdir))
    return runCms(workdir, command, '-encrypt', '-aes256', ...args, 'recipient.crt')
  }

const withSecret =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    runCms(workdir, 'cms', ...args)

const sign =
  (command: string, ...args: string[]): Build =>
  (_payload, workdir) =>
    runCms(workdir, command, '-sign', ...signer, ...args)

const enveloped = (workdir: string) => runCms(workdir, 'cms', '-encrypt', '-aes256', '-outform', 'DER', certificate)

/** Runs one build on the output of another one. */
const nest =
  (outer: Build, inner: Build): Build =>
  (payload, workdir) => {
    const bytes = inner(payload, workdir)
    writeFileSync(join(workdir, 'payload.com'), bytes)
    return outer(bytes, workdir)
  }

const signedDer = sign('cms', '-nodetach', '-outform', 'DER')
const signedSmime = sign('cms', '-nodetach', '-outform', 'SMIME')

/** Writes a value of DER. */
const der = (tag: number, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const compressedDataType = Buffer.from('060b2a864886f70d0109100109', 'hex')
const zlibType = Buffer.from('060b2a864886f70d0109100308', 'hex')
const dataType = Buffer.from('06092a864886f70d010701', 'hex')

/** CMS that compresses its content, as OpenSSL writes it when it is built with zlib. Debian's is not. */
const compressed: Build = (payload) => {
  const content = der(0x30, dataType, der(0xa0, der(0x04, deflateSync(payload))))
  const data = der(0x30, Buffer.from([2, 1, 0]), der(0x30, zlibType), content)
  return der(0x30, compressedDataType, der(0xa0, data))
}

const toPem = (bytes: Buffer) =>
  Buffer.from(`-----BEGIN CMS-----\n${breakLines(bytes.toString('base64'), 64)}\n-----END CMS-----\n`)

/** Signs a mail part that has the payload as an encoded attachment. */
const withMailPart =
  (build: Build): Build =>
  (payload, workdir) => {
    writeFileSync(
      join(workdir, 'payload.com'),
      writeMail({ headers: [], parts: [textPart, attach(toBase64Lines(payload), 'base64')] }),
    )
    return build(payload, workdir)
  }

/** CMS whose content only the holder of a key reads. */
export const encryptedCmsForms: Form[] = [
  cmsForm('CMS enveloped', 'encrypted', {
    'der.p7m': encrypt('-aes256', '-outform', 'DER'),
    'pem.pem': encrypt('-aes128', '-outform', 'PEM'),
    'smime.eml': encrypt('-aes256', '-outform', 'SMIME'),
    '3des.p7m': encrypt('-des3', '-outform', 'DER'),
    'streamed.p7m': encrypt('-aes256', '-outform', 'DER', '-stream'),
    'by-key-id.p7m': encrypt('-aes256', '-outform', 'DER', '-keyid'),
    'rsa.p7m': encryptForRsa('cms', '-outform', 'DER'),
    'pkcs7.p7m': encryptForRsa('smime', '-outform', 'DER'),
    'pkcs7.pem': encryptForRsa('smime', '-outform', 'PEM'),
    'pkcs7.eml': encryptForRsa('smime'),
  }),
  cmsForm('CMS enveloped with authentication', 'encrypted', {
    'der.p7m': encrypt('-aes-256-gcm', '-outform', 'DER'),
    'pem.pem': encrypt('-aes-256-gcm', '-outform', 'PEM'),
    'smime.eml': encrypt('-aes-256-gcm', '-outform', 'SMIME'),
    'streamed.p7m': encrypt('-aes-128-gcm', '-outform', 'DER', '-stream'),
  }),
  cmsForm('CMS encrypted with a shared key', 'encrypted', {
    'der.p7m': withSecret('-EncryptedData_encrypt', '-aes128', '-secretkey', key, '-outform', 'DER'),
    'pem.pem': withSecret('-EncryptedData_encrypt', '-aes128', '-secretkey', key, '-outform', 'PEM'),
    'smime.eml': withSecret('-EncryptedData_encrypt', '-aes128', '-secretkey', key, '-outform', 'SMIME'),
    'password.p7m': withSecret('-encrypt', '-aes128', '-pwri_password', 'secret', '-outform', 'DER'),
    'key-encryption-key.p7m': withSecret(
      '-encrypt',
      '-aes128',
      '-secretkey',
      key,
      '-secretkeyid',
      '0102',
      '-outform',
      'DER',
    ),
  }),
  cmsForm(
    'CMS enveloped in mail and archive',
    'encrypted',
    {
      'attached.eml': (_payload, workdir) => {
        const headers = [
          'Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m',
          'Content-Transfer-Encoding: base64',
        ]
        return writeMail({ parts: [textPart, { headers, body: toBase64Lines(enveloped(workdir)) }] })
      },
      'octets.eml': (_payload, workdir) =>
        writeMail({ parts: [textPart, attach(toBase64Lines(enveloped(workdir)), 'base64')] }),
      'p7m.zip': (_payload, workdir) => zipFile(workdir, 'smime.p7m', enveloped(workdir)),
    },
    { needs: ['openssl', 'zip'] },
  ),
  cmsForm('CMS signed and enveloped', 'encrypted', {
    'signed-inside.p7m': nest(encrypt('-aes256', '-outform', 'DER'), signedDer),
    'enveloped-inside.p7m': nest(signedDer, encrypt('-aes256', '-outform', 'DER')),
    'enveloped-inside.eml': nest(signedSmime, encrypt('-aes256', '-outform', 'SMIME')),
  }),
]

/** CMS that holds its content in clear. */
export const cmsForms: Form[] = [
  cmsForm('CMS signed', 'opened', {
    'der.p7m': signedDer,
    'pem.pem': sign('cms', '-nodetach', '-outform', 'PEM'),
    'opaque.eml': signedSmime,
    'streamed.p7m': sign('cms', '-nodetach', '-outform', 'DER', '-stream'),
    'streamed.pem': sign('cms', '-nodetach', '-outform', 'PEM', '-stream'),
    'no-certificates.p7m': sign('cms', '-nodetach', '-outform', 'DER', '-nocerts', '-noattr'),
    'by-key-id.p7m': sign('cms', '-nodetach', '-outform', 'DER', '-keyid'),
    'pkcs7.p7m': sign('smime', '-nodetach', '-outform', 'DER'),
    'pkcs7.pem': sign('smime', '-nodetach', '-outform', 'PEM'),
    'pkcs7.eml': sign('smime', '-nodetach'),
  }),
  cmsForm(
    'mail with a signature of its own',
    'opened',
    {
      'clear.eml': withMailPart(sign('cms', '-outform', 'SMIME')),
      'clear-pkcs7.eml': withMailPart(sign('smime')),
      'opaque.eml': withMailPart(sign('cms', '-nodetach', '-outform', 'SMIME')),
      'opaque-streamed.eml': withMailPart(sign('cms', '-nodetach', '-outform', 'SMIME', '-stream')),
    },
    { extractors: ['python content', 'openssl cms', 'munpack', 'openssl and python'] },
  ),
  cmsForm(
    'CMS signed, in another container',
    'opened',
    {
      'twice.p7m': nest(signedDer, signedDer),
      'three-times.p7m': nest(signedDer, nest(signedDer, signedDer)),
      'twice.pem': nest(sign('cms', '-nodetach', '-outform', 'PEM'), sign('cms', '-nodetach', '-outform', 'PEM')),
      'in.zip': (payload, workdir) => zipFile(workdir, 'a.p7m', signedDer(payload, workdir)),
      'attached.eml': (payload, workdir) =>
        writeMail({ parts: [textPart, attach(toBase64Lines(signedDer(payload, workdir)), 'base64')] }),
      'zip-inside.p7m': nest(signedDer, (payload, workdir) => zipFile(workdir, 'inner.com', payload)),
    },
    {
      needs: ['openssl', 'zip'],
      extractors: ['openssl cms', 'munpack and openssl', 'openssl and 7z', 'unzip and openssl'],
    },
  ),
  cmsForm('CMS data and digested data', 'ambiguous', {
    'data.p7m': (_payload, workdir) => runCms(workdir, 'cms', '-data_create', '-outform', 'DER'),
    'data.pem': (_payload, workdir) => runCms(workdir, 'cms', '-data_create', '-outform', 'PEM'),
    'digest.p7m': (_payload, workdir) => runCms(workdir, 'cms', '-digest_create', '-outform', 'DER'),
  }),
  cmsForm(
    'CMS compressed',
    'ambiguous',
    {
      'der.p7z': compressed,
      'pem.pem': (payload, workdir) => toPem(compressed(payload, workdir)),
    },
    { needs: [] },
  ),
]
