import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Form } from './form.ts'
import { attach, breakLines, crlf, textPart, toBase64Lines, writeMail } from './mail-writer.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'
import { run } from './tools.ts'

const encryptedForm = formsOf({ family: 'encrypted files', needs: [] })

const fromHex = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex')

/** A file that begins with a signature and looks like noise after it. */
const noiseAfter =
  (...start: (Buffer | string)[]): Build =>
  () =>
    Buffer.concat([
      ...start.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
      randomBytes(600),
    ])

const inZip =
  (name: string, build: Build): Build =>
  (payload, workdir) =>
    zipFile(workdir, name, build(payload, workdir))

const byAge =
  (...args: string[]): Build =>
  (_payload, workdir) => {
    run('age-keygen', ['-o', 'key'], { cwd: workdir })
    const recipient = /age1\w+/.exec(readFileSync(join(workdir, 'key'), 'latin1'))?.[0] ?? ''
    return runAndRead(workdir, 'out', 'age', ...args, '-r', recipient, '-o', 'out', 'payload.com')
  }

/** The header that age writes for a passphrase. The program itself asks a terminal for it. */
const ageWithPassphrase: Build = () => {
  const encode = (length: number) => randomBytes(length).toString('base64').replaceAll('=', '')
  const header = `age-encryption.org/v1\n-> scrypt ${encode(16)} 18\n${encode(32)}\n--- ${encode(32)}\n`
  return Buffer.concat([Buffer.from(header), randomBytes(160)])
}

const armourAge = (bytes: Buffer) =>
  Buffer.from(
    `-----BEGIN AGE ENCRYPTED FILE-----\n${breakLines(bytes.toString('base64'), 64)}\n-----END AGE ENCRYPTED FILE-----\n`,
  )

const luksOptions = {
  luks1: ['--type', 'luks1', '--pbkdf-force-iterations', '1000'],
  luks2: [
    '--type',
    'luks2',
    '--luks2-metadata-size',
    '16k',
    '--luks2-keyslots-size',
    '256k',
    '--pbkdf',
    'pbkdf2',
    '--pbkdf-force-iterations',
    '1000',
  ],
}

const byCryptsetup =
  (kind: keyof typeof luksOptions, ...more: string[]): Build =>
  (_payload, workdir) => {
    const file = join(workdir, 'disk.img')
    writeFileSync(file, Buffer.alloc(kind === 'luks1' ? 2_200_000 : 1_100_000))
    const args = ['luksFormat', '-q', ...luksOptions[kind], ...more, '--key-file', '-', file]
    run('cryptsetup', args, { input: Buffer.from('secret') })
    return readFileSync(file)
  }

const byOpenssl =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    runAndRead(workdir, 'out', 'openssl', 'enc', ...args, '-pass', 'pass:secret', '-in', 'payload.com', '-out', 'out')

/** The text that ansible-vault writes: hexadecimal digits of hexadecimal digits. */
const vault = (header: string, indent = '') => {
  const hex = [32, 32, 80].map((length) => randomBytes(length).toString('hex')).join('\n')
  return `${header}\n${breakLines(Buffer.from(hex).toString('hex'), 80)}\n`.replace(/^/gm, indent).trimEnd()
}

/** First sectors of a volume that BitLocker encrypts. */
const bitlocker = (jump: string, name: string, identifier: Buffer, offset: number) => {
  const volume = randomBytes(65_536)
  volume.fill(0, 0, 512)
  fromHex(jump).copy(volume)
  volume.write(name, 3, 'latin1')
  volume.writeUInt16LE(512, 11)
  volume.writeUInt8(8, 13)
  volume.writeUInt8(0xf8, 21)
  identifier.copy(volume, offset)
  volume.writeUInt16LE(0xaa55, 510)
  return volume
}

const bitlockerId = fromHex('3bd66749292ed84a8399f6a339e3d001')

/** A disk of QEMU that says how it is encrypted: 1 is AES, 2 is LUKS. */
const qcowWithEncryption =
  (method: number): Build =>
  (_payload, workdir) => {
    const secret = ['--object', 'secret,id=s,data=secret']
    const options = ['-f', 'qcow2', '-o', 'encrypt.format=aes,encrypt.key-secret=s', 'a.qcow2', '64k']
    const disk = runAndRead(workdir, 'a.qcow2', 'qemu-img', 'create', '-q', ...secret, ...options)
    disk.writeUInt32BE(method, 32)
    return disk
  }

/** Files that say in their first bytes that they are encrypted. */
export const encryptedForms: Form[] = [
  encryptedForm(
    'age for a key',
    'encrypted',
    {
      'binary.age': byAge(),
      'armoured.age': byAge('-a'),
      'in.zip': inZip('a.age', byAge()),
      'armoured-in.zip': inZip('a.txt', byAge('-a')),
      'attached.eml': (payload, workdir) =>
        writeMail({ parts: [textPart, attach(toBase64Lines(byAge()(payload, workdir)), 'base64')] }),
      'inline.eml': (payload, workdir) =>
        writeMail({ parts: [{ ...textPart, body: byAge('-a')(payload, workdir).toString() }] }),
    },
    { needs: ['age', 'age-keygen', 'zip'] },
  ),
  encryptedForm('age with a passphrase', 'encrypted', {
    'binary.age': ageWithPassphrase,
    'armoured.age': (payload, workdir) => armourAge(ageWithPassphrase(payload, workdir)),
    'armoured-crlf.age': (payload, workdir) =>
      Buffer.from(armourAge(ageWithPassphrase(payload, workdir)).toString().replaceAll('\n', crlf)),
    'text-before.txt': (payload, workdir) =>
      Buffer.concat([Buffer.from('The report:\n\n'), armourAge(ageWithPassphrase(payload, workdir))]),
  }),
  encryptedForm(
    'LUKS 1',
    'encrypted',
    { 'disk.img': byCryptsetup('luks1'), 'in.zip': inZip('disk.img', byCryptsetup('luks1')) },
    { needs: ['cryptsetup', 'zip'] },
  ),
  encryptedForm(
    'LUKS 2',
    'encrypted',
    {
      'disk.img': byCryptsetup('luks2'),
      'labelled.img': byCryptsetup('luks2', '--label', 'backup'),
      'with-key-size-256.img': byCryptsetup('luks2', '--key-size', '256'),
      'in.zip': inZip('disk.img', byCryptsetup('luks2')),
      'second-header.img': (payload, workdir) => byCryptsetup('luks2')(payload, workdir).fill(0, 0, 4096),
    },
    { needs: ['cryptsetup', 'zip'] },
  ),
  encryptedForm(
    'BitLocker',
    'encrypted',
    {
      'windows-7.img': () => bitlocker('eb5890', '-FVE-FS-', bitlockerId, 160),
      'vista.img': () => bitlocker('eb5290', '-FVE-FS-', bitlockerId, 160),
      'to-go.img': () => bitlocker('eb5890', 'MSWIN4.1', bitlockerId, 424),
      'in.zip': inZip('volume.img', () => bitlocker('eb5890', '-FVE-FS-', bitlockerId, 160)),
    },
    { needs: ['zip'] },
  ),
  encryptedForm(
    'KeePass',
    'encrypted',
    {
      'passwords.kdb': noiseAfter(fromHex('03d9a29a 65fb4bb5 02000000 03000300')),
      'passwords-3.kdbx': noiseAfter(
        fromHex('03d9a29a 67fb4bb5 01000300 021000 31c1f2e6bf714350be5805216afc5aff 030400 01000000'),
      ),
      'passwords-4.kdbx': noiseAfter(fromHex('03d9a29a 67fb4bb5 00000400 0210000000 31c1f2e6bf714350be5805216afc5aff')),
      'beta.kdbx': noiseAfter(fromHex('03d9a29a 66fb4bb5 01000300')),
      'in.zip': inZip('a.kdbx', noiseAfter(fromHex('03d9a29a 67fb4bb5 00000400 0210000000'))),
    },
    { needs: ['zip'] },
  ),
  encryptedForm(
    'AxCrypt',
    'encrypted',
    {
      'payload-com.axx': noiseAfter(fromHex('c0b9072e 4f93f146 a015792c a1d9e821 15000000 02')),
      'in.zip': inZip('a.axx', noiseAfter(fromHex('c0b9072e 4f93f146 a015792c a1d9e821 15000000 02'))),
    },
    { needs: ['zip'] },
  ),
  encryptedForm(
    'AES Crypt',
    'encrypted',
    {
      'version-0.aes': noiseAfter('AES\0\x05'),
      'version-1.aes': noiseAfter('AES\x01\0'),
      'version-2.aes': noiseAfter('AES\x02\0\0\x1bCREATED_BY\0aescrypt 3.16.0\0\x80', Buffer.alloc(128), '\0\0'),
      'version-3.aes': noiseAfter('AES\x03\0\0\x1bCREATED_BY\0aescrypt 4.0.0.\0\0', fromHex('000493e0')),
      'in.zip': inZip('a.aes', noiseAfter('AES\x02\0\0\x1bCREATED_BY\0aescrypt 3.16.0\0\0\0')),
    },
    { needs: ['zip'] },
  ),
  encryptedForm(
    'openssl with a password',
    'encrypted',
    {
      'aes.enc': byOpenssl('-aes-256-cbc', '-pbkdf2'),
      'older-key.enc': byOpenssl('-aes-128-cbc', '-md', 'sha256'),
      'chacha.enc': byOpenssl('-chacha20', '-pbkdf2'),
      'des3.enc': byOpenssl('-des3', '-pbkdf2'),
      'in.zip': inZip('a.enc', byOpenssl('-aes-256-cbc', '-pbkdf2')),
    },
    { needs: ['openssl', 'zip'] },
  ),
  encryptedForm(
    'openssl with a password, as text',
    'encrypted',
    {
      'lines.txt': byOpenssl('-aes-256-cbc', '-pbkdf2', '-a'),
      'one-line.txt': byOpenssl('-aes-256-cbc', '-pbkdf2', '-a', '-A'),
      'in.zip': inZip('a.txt', byOpenssl('-aes-256-cbc', '-pbkdf2', '-a')),
      'attached.eml': (payload, workdir) =>
        writeMail({
          parts: [textPart, attach(toBase64Lines(byOpenssl('-aes-256-cbc', '-pbkdf2')(payload, workdir)), 'base64')],
        }),
    },
    { needs: ['openssl', 'zip'] },
  ),
  encryptedForm(
    'ansible-vault',
    'encrypted',
    {
      'version-1.1.yml': () => Buffer.from(vault('$ANSIBLE_VAULT;1.1;AES256')),
      'version-1.2.yml': () => Buffer.from(vault('$ANSIBLE_VAULT;1.2;AES256;production')),
      'crlf.yml': () => Buffer.from(vault('$ANSIBLE_VAULT;1.1;AES256').replaceAll('\n', crlf)),
      'in.zip': inZip('vault.yml', () => Buffer.from(vault('$ANSIBLE_VAULT;1.1;AES256'))),
    },
    { needs: ['zip'] },
  ),
  encryptedForm(
    'virtual disk with encryption',
    'encrypted',
    {
      'luks.qcow2': qcowWithEncryption(2),
      'aes.qcow2': qcowWithEncryption(1),
    },
    { needs: ['qemu-img'] },
  ),
  encryptedForm('encrypted files of other programs', 'encrypted', {
    'vim-zip.txt': noiseAfter('VimCrypt~01!'),
    'vim-blowfish.txt': noiseAfter('VimCrypt~03!'),
    'scrypt.enc': noiseAfter('scrypt\0', fromHex('0e00000008000000')),
    'android.ab': noiseAfter(`ANDROID BACKUP\n5\n1\nAES-256\n${'A1'.repeat(64)}\n${'B2'.repeat(64)}\n10000\n`),
    'apple.dmg': noiseAfter('encrcdsa', fromHex('00000002 00000010 00000005 80000001 00000080')),
  }),
]
