import { fileURLToPath } from 'node:url'
import type { Extractor } from './form.ts'

const readers = fileURLToPath(new URL('content-readers.py', import.meta.url))

const special = (name: string, program: string, args: Extractor['args'], more: Partial<Extractor> = {}): Extractor => ({
  name,
  program,
  args,
  isSpecial: true,
  ...more,
})

/** Runs a line of shell, in which `$0` is the sample. */
const shell = (name: string, command: string): Extractor => special(name, 'sh', (file) => ['-c', command, file])

/** Copies all files out of a FAT file system. */
const copyFromFat = (image: string) => `MTOOLS_SKIP_CHECK=1 mcopy -s -n -i ${image} ::* .`

const toRaw = 'qemu-img convert -O raw "$0" raw.img'

const others = 'for f in ./*; do 7z x -y -bd "$f"; tnef "$f"; unar -q -f -D "$f"; done'

const certificate = fileURLToPath(new URL('../support/certificates/first.crt', import.meta.url))

/** Reads CMS in each encoding. The certificate is given, because not every signed form holds it. */
const verifyCms = (file: string) =>
  `for f in DER PEM SMIME; do openssl cms -verify -noverify -nosigs -certfile ${certificate} -inform $f -in ${file} -out verified-$f; ` +
  `openssl cms -data_out -inform $f -in ${file} -out data-$f; openssl cms -uncompress -inform $f -in ${file} -out plain-$f; ` +
  `openssl cms -digest_verify -inform $f -in ${file} -out digest-$f; done`

/** A directory without keys is enough for signed data: gpg writes the content and complains. */
const readOpenpgp = (file: string) =>
  `mkdir -pm 700 home; gpg --homedir home --batch --yes --no-options --no-autostart -o decrypted -d ${file}; rm -rf home`

/** Runs a self-extractor of makeself in its own way, and any other script as it is. */
const runScript = (file: string) =>
  `sh ${file} --noexec --keep --nochown --nox11 --target made; [ -d made ] || sh ${file}`

const decodeAscii85 =
  'for s in True False; do python3 -c "import base64,sys; ' +
  'sys.stdout.buffer.write(base64.a85decode(open(sys.argv[1],\'rb\').read().strip(), adobe=True, foldspaces=$s))" "$0" > $s; done'

/** Removes the repository at the end, whose files would be unpacked as well. */
const importStream =
  'git init -q .; git fast-import --quiet < "$0"; ' +
  'git checkout -qf "$(git for-each-ref --format="%(objectname)" | head -n 1)"; rm -rf .git'

/** Puts an object into a repository, where its name is its hash, and lets Git print it. */
const restoreGitObject =
  'git init -q r; h=$(python3 -c "import hashlib,sys,zlib; print(hashlib.sha1(zlib.decompress(open(sys.argv[1],\'rb\').read())).hexdigest())" "$0"); ' +
  'd=r/.git/objects/$(echo $h | cut -c1-2); mkdir -p $d; cp "$0" $d/$(echo $h | cut -c3-); git -C r cat-file blob $h > out; rm -rf r'

/** Programs that open mail, documents, encrypted and signed forms, file systems and installers. */
export const contentExtractors: Extractor[] = [
  special('python content', 'python3', (file) => [readers, file], { hasReaders: true }),
  special('munpack', 'munpack', (file) => ['-q', '-t', file]),
  special('ripmime', 'ripmime', (file) => ['-i', file, '-d', '.']),
  special('uudecode', 'uudecode', (file) => ['-c', '-o', 'decoded', file]),
  special('uudeview', 'uudeview', (file) => ['-i', '-q', '-n', '-p', '.', file]),
  shell('munpack and others', `munpack -q -t "$0"; ${others}`),
  shell('unzip and tnef', 'unzip -qq "$0"; tnef *'),
  special('tnef', 'tnef', (file) => [file]),
  special('qpdf', 'qpdf', (file) => ['--show-attachment=payload.com', file], { printsContent: true }),
  special('pdfdetach', 'pdfdetach', (file) => ['-saveall', file]),
  shell('pdfdetach and 7z', `pdfdetach -saveall "$0"; ${others}`),
  shell('unzip and pdfdetach', 'unzip -qq "$0"; for f in ./*; do pdfdetach -saveall "$f"; done'),
  special('msiextract', 'msiextract', (file) => [file]),
  shell('openssl cms', verifyCms('"$0"')),
  shell('munpack and openssl', `munpack -q -t "$0"; for p in ./*; do ${verifyCms('"$p"')}; done`),
  shell('unzip and openssl', `unzip -qq "$0"; for p in ./*; do ${verifyCms('"$p"')}; done`),
  shell('openssl and 7z', `${verifyCms('"$0"')}; ${others}`),
  shell('openssl and python', `${verifyCms('"$0"')}; for f in ./*; do python3 ${readers} "$f"; done`),
  shell('gpg', readOpenpgp('"$0"')),
  shell('munpack and gpg', `munpack -q -t "$0"; for p in ./*; do ${readOpenpgp('"$p"')}; done`),
  shell('openssl base64', 'openssl base64 -d -in "$0" -out decoded'),
  shell('base64', 'base64 -di "$0" > decoded'),
  shell('base32', 'basenc -d --base32 "$0" > decoded; basenc -d --base32hex "$0" > extended'),
  shell('ascii85', decodeAscii85),
  shell('base64 twice', 'base64 -di "$0" | base64 -di > decoded'),
  shell('base64 and others', `base64 -di "$0" > decoded; ${others}; gzip -dc decoded > plain`),
  shell('mtools', copyFromFat('"$0"')),
  special('debugfs', 'debugfs', (file) => ['-R', 'rdump / .', file]),
  special('unsquashfs', 'unsquashfs', (file) => ['-q', '-d', 'out', file]),
  shell('unsquashfs at 64 KiB', 'unsquashfs -q -o 65536 -d out "$0"'),
  special('cramfs', 'fsck.cramfs', (file) => ['--extract=out', file]),
  special('btrfs', 'btrfs', (file) => ['restore', file, '.']),
  special('erofs', 'fsck.erofs', (file) => ['--extract=out', file]),
  shell('ntfscat', 'ntfscat -f "$0" payload.com > payload'),
  shell('qemu-img and mtools', `${toRaw} && ${copyFromFat('raw.img')}; rm -f raw.img`),
  shell(
    'unzip, qemu-img and mtools',
    `unzip -qq "$0"; set -- ./*; qemu-img convert -O raw "$1" raw.img; ${copyFromFat('raw.img')}`,
  ),
  special('tsk_recover', 'tsk_recover', (file) => ['-a', file, '.']),
  shell('unzip and tsk_recover', 'unzip -qq "$0"; set -- ./*; tsk_recover -a "$1" .'),
  shell('unzip and mtools', `unzip -qq "$0"; set -- ./*; ${copyFromFat('"$1"')}`),
  shell('gunzip and mtools', `gzip -dc "$0" > raw.img; ${copyFromFat('raw.img')}; rm -f raw.img`),
  shell('unzip and btrfs', 'unzip -qq "$0"; set -- ./*; btrfs restore "$1" .'),
  shell('unzip and unsquashfs', 'unzip -qq "$0"; set -- ./*; unsquashfs -q -d out "$1"'),
  shell('unzip and cramfs', 'unzip -qq "$0"; set -- ./*; fsck.cramfs --extract=out "$1"'),
  shell('unzip and erofs', 'unzip -qq "$0"; set -- ./*; fsck.erofs --extract=out "$1"'),
  shell('partition', 'f="$0"; unzip -qq "$0" && set -- ./* && f="$1"; tsk_recover -a -o 2048 "$f" .'),
  shell(
    'disk behind a disc',
    'f="$0"; unzip -qq "$0" && set -- ./* && f="$1"; ' +
      `tail -c 524288 "$f" > raw.img; ${copyFromFat('raw.img')}; rm -f raw.img`,
  ),
  // Only samples of this corpus are run, and they contain nothing that does harm.
  shell('run by sh', runScript('"$0"')),
  shell('unzip and sh', `unzip -qq "$0"; set -- ./*; ${runScript('"$1"')}`),
  special('run by bash', 'bash', (file) => [file]),
  // With the type `#` 7-Zip looks for archives at any place.
  shell('archive behind a program', '7z x -y -bd "-t#" "$0"; for f in ./*; do tar -xf "$f"; 7z x -y -bd "$f"; done'),
  shell('git objects', restoreGitObject),
  shell('git fast-import', importStream),
  shell(
    'git apply',
    'git init -q .; git apply "$0" || patch -s -p1 < "$0"; rm -rf .git; for f in ./*; do 7z x -y -bd "$f"; done',
  ),
  shell('patch', 'patch -s -o payload.com empty < "$0"; : > other; patch -s other "$0"'),
  special('run by python', 'python3', (file) => [file]),
  shell('run by node', `${process.execPath} "$0"`),
]
