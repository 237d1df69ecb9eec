import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Programs that make or extract samples, and the Debian packages that contain them. */
const packages: Record<string, string> = {
  '7z': 'p7zip-full',
  age: 'age',
  'age-keygen': 'age',
  ar: 'binutils',
  arj: 'arj',
  base64: 'coreutils',
  brotli: 'brotli',
  bsdtar: 'libarchive-tools',
  btrfs: 'btrfs-progs',
  bzip2: 'bzip2',
  cabextract: 'cabextract',
  compress: 'ncompress',
  cpio: 'cpio',
  cryptsetup: 'cryptsetup-bin',
  debugfs: 'e2fsprogs',
  'dpkg-deb': 'dpkg',
  'fsck.cramfs': 'util-linux',
  gcab: 'gcab',
  genisoimage: 'genisoimage',
  gpg: 'gpg',
  gzip: 'gzip',
  lcab: 'lcab',
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
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.fat': 'dosfstools',
  'mkfs.vfat': 'dosfstools',
  mkntfs: 'ntfs-3g',
  mksquashfs: 'squashfs-tools',
  mpack: 'mpack',
  msibuild: 'msitools',
  msiextract: 'msitools',
  mtools: 'mtools',
  munpack: 'mpack',
  openssl: 'openssl',
  pdfdetach: 'poppler-utils',
  python3: 'python3',
  'qemu-img': 'qemu-utils',
  qpdf: 'qpdf',
  ripmime: 'ripmime',
  rpm2cpio: 'rpm2cpio',
  rpmbuild: 'rpm',
  sfdisk: 'fdisk',
  shar: 'sharutils',
  sq: 'sq',
  tar: 'tar',
  tnef: 'tnef',
  tsk_recover: 'sleuthkit',
  ntfscp: 'ntfs-3g',
  unar: 'unar',
  unsquashfs: 'squashfs-tools',
  unzip: 'unzip',
  uudecode: 'sharutils',
  uudeview: 'uudeview',
  uuencode: 'sharutils',
  wimcapture: 'wimtools',
  wimextract: 'wimtools',
  wixl: 'wixl',
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

/** Installs the missing programs as root. Does nothing for other users: their forms are skipped. */
export function installTools() {
  const listMissing = () => [
    ...new Set(Object.entries(packages).flatMap(([program, name]) => (findTool(program) === undefined ? [name] : []))),
  ]
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get') || listMissing().length === 0) return
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = (...names: string[]) => {
    const options = ['-y', '-q', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=60']
    spawnSync('/usr/bin/apt-get', ['install', ...options, ...names], { stdio: 'ignore', timeout: 180_000, env })
  }
  install(...listMissing())
  // One unknown package makes the whole command fail, so the rest is installed one by one.
  for (const name of listMissing()) install(name)
}

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
