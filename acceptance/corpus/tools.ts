import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { installPackages } from '../support/install-packages.ts'

/** Programs that make or extract samples, and the Debian packages that contain them. */
const packages: Record<string, string> = {
  '7z': 'p7zip-full',
  age: 'age',
  'age-keygen': 'age',
  ar: 'binutils',
  arc: 'arc',
  arj: 'arj',
  base64: 'coreutils',
  basenc: 'coreutils',
  brotli: 'brotli',
  bsdtar: 'libarchive-tools',
  btrfs: 'btrfs-progs',
  bzip2: 'bzip2',
  bzip3: 'bzip3',
  cabextract: 'cabextract',
  compress: 'ncompress',
  cpio: 'cpio',
  cryptsetup: 'cryptsetup-bin',
  dar: 'dar',
  debugfs: 'e2fsprogs',
  diff: 'diffutils',
  'dpkg-deb': 'dpkg',
  'fsck.cramfs': 'util-linux',
  gcab: 'gcab',
  genisoimage: 'genisoimage',
  git: 'git',
  gpg: 'gpg',
  gzip: 'gzip',
  hexdump: 'bsdextrautils',
  lha: 'lhasa',
  lz4: 'lz4',
  lzip: 'lzip',
  lzop: 'lzop',
  makensis: 'nsis',
  makeself: 'makeself',
  mcopy: 'mtools',
  mke2fs: 'e2fsprogs',
  'mkfs.btrfs': 'btrfs-progs',
  'mkfs.cramfs': 'util-linux',
  'mkfs.erofs': 'erofs-utils',
  'mkfs.exfat': 'exfatprogs',
  'mkfs.fat': 'dosfstools',
  mkntfs: 'ntfs-3g',
  mksquashfs: 'squashfs-tools',
  mpack: 'mpack',
  msiextract: 'msitools',
  mkzftree: 'zisofs-tools',
  mtools: 'mtools',
  munpack: 'mpack',
  ntfscp: 'ntfs-3g',
  od: 'coreutils',
  openssl: 'openssl',
  par2: 'par2',
  patch: 'patch',
  pdfdetach: 'poppler-utils',
  php: 'php-cli',
  pigz: 'pigz',
  python3: 'python3',
  'qemu-img': 'qemu-utils',
  qpdf: 'qpdf',
  ripmime: 'ripmime',
  rpm2cpio: 'rpm2cpio',
  rpmbuild: 'rpm',
  rzip: 'rzip',
  sfdisk: 'fdisk',
  shar: 'sharutils',
  sq: 'sq',
  sqlite3: 'sqlite3',
  tar: 'tar',
  tnef: 'tnef',
  tsk_recover: 'sleuthkit',
  unar: 'unar',
  unsquashfs: 'squashfs-tools',
  unzip: 'unzip',
  uudecode: 'sharutils',
  uudeview: 'uudeview',
  uuencode: 'sharutils',
  wimcapture: 'wimtools',
  wimextract: 'wimtools',
  xorriso: 'xorriso',
  xz: 'xz-utils',
  zip: 'zip',
  zstd: 'zstd',
}

/** Debian's own directories: other versions of Python on the PATH may lack modules. */
const directories = ['/usr/bin', '/usr/sbin', '/bin', '/sbin']

/** Returns the path of a program, or undefined when it is not installed. */
export const findTool = (name: string): string | undefined =>
  directories.map((directory) => join(directory, name)).find((path) => existsSync(path))

/** Python module that an extractor imports, and its Debian package. */
const pythonModule = { path: '/usr/lib/python3/dist-packages/olefile', package: 'python3-olefile' }

/** Installs the programs that make samples and those that extract them. */
export function installAllTools() {
  const missing = listMissing(Object.keys(packages))
  installPackages(existsSync(pythonModule.path) ? missing : [...missing, pythonModule.package])
}

/** Installs programs. */
export function installTools(programs: readonly string[]) {
  installPackages(listMissing(programs))
}

const listMissing = (programs: readonly string[]) => [
  ...new Set(programs.flatMap((program) => (findTool(program) === undefined ? (packages[program] ?? []) : []))),
]

/** Runs a program that makes a sample, and returns its output. Throws when it fails. */
export function run(program: string, args: string[], options: { cwd?: string; input?: Buffer; env?: object } = {}) {
  const { status, stdout, stderr, error } = spawnSync(findTool(program) ?? program, args, {
    cwd: options.cwd,
    input: options.input ?? Buffer.alloc(0),
    env: { ...process.env, LC_ALL: 'C.UTF-8', ...options.env },
    timeout: 30_000,
    maxBuffer: 2 ** 26,
  })
  if (error !== undefined || status !== 0)
    throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${error?.message ?? ''} ${stderr} ${stdout}`)
  return stdout
}
