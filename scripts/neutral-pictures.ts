import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import sharp from 'sharp'

const run = promisify(execFile)

/** Packages with harmless photographs, paintings, screenshots, diagrams and game art: 780 MB, downloaded once. */
const packages = [
  'debian-edu-artwork-spacefun',
  'debian-handbook',
  'desktop-base',
  'digikam-data',
  'eom-common',
  'frozen-bubble-data',
  'gimp-data',
  'gimp-help-en',
  'gnome-backgrounds',
  'gnome-user-docs',
  'imagemagick-6-doc',
  'kodi-data',
  'kphotoalbum',
  'libgtk-3-doc',
  'libgtk-4-doc',
  'lincity-ng-data',
  'lomiri-wallpapers-16.04',
  'lomiri-wallpapers-20.04',
  'lordsawar-data',
  'lxqt-themes',
  'mate-backgrounds',
  'opencv-doc',
  'palapeli-data',
  'photofilmstrip',
  'plasma-workspace-wallpapers',
  'pysiogame',
  'python-skimage-doc',
  'python-sklearn-doc',
  'python3-imageio',
  'python3-skimage',
  'python3-sklearn',
  'qtgraphicaleffects5-doc-html',
  'stopmotion',
  'ukui-wallpapers',
]
/** Packages with drawn and painted people: portraits, faces, bodies, sports. Debian has no package of photographs. */
const packagesOfPeople = [
  { name: 'openclipart-png', under: '/png/people/' },
  { name: 'openclipart-png', under: '/png/recreation/sports/' },
  { name: 'wesnoth-1.16-data', under: '/portraits/' },
  { name: 'renpy-demo', under: '/game/images/' },
  { name: 'dde-account-faces', under: '/icons/' },
]
const minPeopleSide = 100

/** Limits the pictures of each package, so that none dominates the set. */
const perPackage = 60
const minSide = 200
const maxPixels = 60_000_000
const formats = new Set(['jpeg', 'png', 'gif', 'webp'])
const extensions = new Set(['.jpg', '.jpeg', '.png', '.gif', '.webp'])
const cacheDir = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'assay', 'neutral-pictures')

/**
 * Lists paths of harmless pictures, the same in every run: from Debian packages, which are downloaded
 * but not installed, and generated ones. A package that cannot be downloaded is left out with a note.
 */
export async function collectNeutralPictures(): Promise<string[]> {
  const choice = makeChoice(minSide)
  for (const name of packages) {
    const dir = await unpack(name).catch((error) => warn(`${name} is left out: ${toReason(error)}`))
    if (dir !== undefined) await choice.add(await listPictures(dir), perPackage)
  }
  await choice.add(await drawPictures(join(cacheDir, 'drawn')), Number.POSITIVE_INFINITY)
  return choice.pictures
}

/** Lists paths of harmless pictures that show people, the same in every run. */
export async function collectPicturesOfPeople(): Promise<string[]> {
  const choice = makeChoice(minPeopleSide)
  for (const { name, under } of packagesOfPeople) {
    const dir = await unpack(name).catch((error) => warn(`${name} is left out: ${toReason(error)}`))
    if (dir === undefined) continue
    const paths = (await listPictures(dir)).filter((path) => path.includes(under))
    await choice.add(paths, Number.POSITIVE_INFINITY)
  }
  return choice.pictures
}

/** Adds pictures that are large enough, each content once, at even distances when there are too many. */
function makeChoice(least: number) {
  const hashes = new Set<string>()
  const pictures: string[] = []
  const add = async (paths: string[], most: number) => {
    const suitable: string[] = []
    for (const path of paths) {
      const hash = createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
      if (hashes.has(hash) || !(await isSuitable(path, least))) continue
      hashes.add(hash)
      suitable.push(path)
    }
    const step = Math.max(1, suitable.length / most)
    for (let i = 0; i < Math.min(most, suitable.length); i++) pictures.push(suitable[Math.floor(i * step)] as string)
  }
  return { pictures, add }
}

async function unpack(name: string): Promise<string> {
  const dir = join(cacheDir, name)
  if (await exists(dir)) return dir
  await mkdir(cacheDir, { recursive: true })
  const unfinished = join(cacheDir, `.${name}.${process.pid}`)
  await mkdir(unfinished, { recursive: true })
  try {
    await run('apt-get', ['download', '-q', '-o', 'APT::Sandbox::User=root', name], { cwd: unfinished })
    const [file] = await readdir(unfinished)
    if (file === undefined) throw new Error('apt-get downloaded nothing')
    await run('dpkg', ['-x', join(unfinished, file), unfinished])
    await rm(join(unfinished, file))
    await keepPictures(unfinished)
    await rename(unfinished, dir)
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
  return dir
}

/** Deletes all files but pictures: some packages consist mostly of programs and manuals. */
async function keepPictures(dir: string): Promise<void> {
  const kept = new Set(await listPictures(dir))
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isDirectory() && !kept.has(path)) await rm(path)
  }
}

async function listPictures(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && extensions.has(extname(entry.name).toLowerCase()))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

async function isSuitable(path: string, least: number): Promise<boolean> {
  try {
    const { format, width, height } = await sharp(path).metadata()
    return formats.has(format) && Math.min(width, height) >= least && width * height <= maxPixels
  } catch {
    return false
  }
}

/** Generates pictures that no package has: plain fields, gradients, noise, text and shapes, some in skin colours. */
async function drawPictures(dir: string): Promise<string[]> {
  await mkdir(dir, { recursive: true })
  const paths: string[] = []
  for (const [i, svg] of drawings().entries()) {
    const path = join(dir, `${i}.png`)
    paths.push(path)
    if (!(await exists(path))) await sharp(Buffer.from(svg)).png().toFile(path)
  }
  for (const [i, sigma] of [5, 20, 60, 120].entries()) {
    const path = join(dir, `noise-${i}.png`)
    paths.push(path)
    if (await exists(path)) continue
    const noise = { type: 'gaussian' as const, mean: 128, sigma }
    await sharp({ create: { width: 640, height: 480, channels: 3, background: 'grey', noise } })
      .png()
      .toFile(path)
  }
  return paths
}

function drawings(): string[] {
  const colours = ['#e8b99a', '#c68642', '#8d5524', '#ffffff', '#000000', '#d01c1f', '#1f6fd0', '#2e8b57', '#f2d024']
  return colours.flatMap((colour, i) => {
    const other = colours[(i + 4) % colours.length]
    return [
      draw(`<rect width="640" height="480" fill="${colour}"/>`),
      draw(
        `<defs><linearGradient id="g" x2="1" y2="1"><stop stop-color="${colour}"/><stop offset="1" stop-color="${other}"/>` +
          '</linearGradient></defs><rect width="640" height="480" fill="url(#g)"/>',
      ),
      draw(
        `<rect width="640" height="480" fill="${colour}"/><circle cx="220" cy="200" r="140" fill="${other}"/>` +
          `<path d="M380 420 L520 160 L600 420 Z" fill="${other}" opacity="0.6"/>`,
      ),
      draw(
        `<rect width="640" height="480" fill="${colour}"/><g font-family="sans-serif" font-size="42" fill="${other}">` +
          ['Quarterly report', 'Sales rose by 4 %', 'Costs fell by 2 %', 'Questions?']
            .map((line, row) => `<text x="60" y="${100 + row * 90}">${line}</text>`)
            .join('') +
          '</g>',
      ),
    ]
  })
}

const draw = (content: string) => `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="480">${content}</svg>`

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

function warn(text: string): undefined {
  process.stderr.write(`${text}\n`)
}

const toReason = (error: unknown) => (error instanceof Error ? error.message.split('\n')[0] : String(error))
