import { fileURLToPath } from 'node:url'
import type { Extractor } from './form.ts'

const readers = fileURLToPath(new URL('readers.py', import.meta.url))

/** Options of 7-Zip that let it run without questions. */
const sevenZip = ['x', '-y', '-p', '-bd', '-bso0', '-bse0']

const toStdout = (name: string, program: string, ...args: string[]): Extractor => ({
  name,
  program,
  args: () => args,
  isFed: true,
  printsContent: true,
  isSpecial: true,
})

/** Unpacks a zip, then its members with programs that 7-Zip and libarchive cannot replace. */
const unzipAndOthers =
  'unzip -qq -o "$0"; for f in ./*; do lz4 -dcq "$f" > "$f.1"; lzip -dc "$f" > "$f.2"; wimextract "$f" 1; bsdtar -xf "$f"; done'

/** Programs that open archives and compressed streams. Those that open one format only are special. */
export const archiveExtractors: Extractor[] = [
  { name: 'python', program: 'python3', args: (file) => [readers, file], hasReaders: true },
  { name: '7z', program: '7z', args: (file) => [...sevenZip, file] },
  { name: 'bsdtar', program: 'bsdtar', args: (file) => ['-xf', file] },
  { name: 'bsdtar from a stream', program: 'bsdtar', args: () => ['-xf', '-'], isFed: true },
  { name: 'unzip', program: 'unzip', args: (file) => ['-qq', '-o', file] },
  { name: 'tar', program: 'tar', args: (file) => ['-xf', file] },
  { name: 'tar -i', program: 'tar', args: (file) => ['-i', '-xf', file] },
  { name: 'unar', program: 'unar', args: (file) => ['-q', '-D', '-f', '-p', '', file] },
  { name: 'cpio', program: 'cpio', args: () => ['-idum', '--quiet', '--no-absolute-filenames'], isFed: true },
  // As a parser, 7-Zip searches a file for archives and writes each one it finds.
  {
    name: '7z as a parser',
    program: '7z',
    args: (file) => [...sevenZip, '-t#', file],
    inner: '7z',
    isSpecial: true,
  },
  toStdout('gzip', 'gzip', '-dc'),
  toStdout('pigz', 'pigz', '-dc'),
  // PHP tells archives by the ends of their names.
  {
    name: 'php',
    program: 'php',
    args: (file) => ['-r', "copy($argv[1], 'a.phar'); (new Phar('a.phar'))->extractTo('.');", '--', file],
    isSpecial: true,
  },
  toStdout('bzip2', 'bzip2', '-dc'),
  toStdout('xz', 'xz', '-dc'),
  toStdout('lzma', 'xz', '--format=lzma', '-dc'),
  toStdout('zstd', 'zstd', '-dcq'),
  toStdout('lz4', 'lz4', '-dcq'),
  toStdout('lzip', 'lzip', '-dc'),
  toStdout('lzop', 'lzop', '-dc'),
  toStdout('compress', 'compress', '-dc'),
  toStdout('brotli', 'brotli', '-dc'),
  {
    name: 'rpm2cpio and cpio',
    program: 'sh',
    args: (file) => ['-c', 'rpm2cpio "$0" | cpio -idum --quiet', file],
    isSpecial: true,
  },
  {
    name: 'bsdtar without Joliet',
    program: 'bsdtar',
    args: (file) => ['-xf', file, '--options', 'iso9660:!joliet'],
    isSpecial: true,
  },
  { name: 'ar', program: 'ar', args: (file) => ['x', file], isSpecial: true },
  { name: 'dpkg-deb', program: 'dpkg-deb', args: (file) => ['-x', file, '.'], isSpecial: true },
  { name: 'cabextract', program: 'cabextract', args: (file) => ['-q', file], isSpecial: true },
  { name: 'arj', program: 'arj', args: (file) => ['e', '-y', file], isSpecial: true },
  { name: 'lha', program: 'lha', args: (file) => ['xqf', file], isSpecial: true },
  { name: 'wimlib', program: 'wimextract', args: (file) => [file, '1'], isSpecial: true },
  { name: 'unzip and others', program: 'sh', args: (file) => ['-c', unzipAndOthers, file], isSpecial: true },
  // Only samples of this corpus are run, and they contain nothing that does harm.
  { name: 'sh', program: 'sh', args: (file) => [file], isSpecial: true },
]
