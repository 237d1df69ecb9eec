import { openChildren, sum } from './children.ts'
import type { EngineJob, EngineResult } from './nsfw-engine.ts'
import type { openPictures } from './nsfw-pictures.ts'
import { listImageProcesses, openSetting, type Setting } from './nsfw-setting.ts'
import { forgetPeak, listTree, readMegabytes, readMegabytesTogether, readPeakMegabytes } from './processes.ts'
import type { Row } from './results.ts'

const megabyte = 1024 * 1024
const atOnce = 16
const wanted = 'under 600 MB'
const thorough = { ASSAY_NSFW_PROFILE: 'thorough' }
const bothOpen = ', both models open'
type Pictures = Awaited<ReturnType<typeof openPictures>>
/** JPEGs are decoded row by row; decoders of other formats hold more memory. */
type Heavy = { jpegs: string[]; others: string[] }
const ofOthersText = 'progressive JPEG and PNG'

/** Memory of the service and its image processes while many clients send large pictures. */
export async function benchMemory(pictures: Pictures): Promise<Row[]> {
  // A little below the limit, which counts the comment that makes each picture new but not the form.
  const make = async (megabytes: number): Promise<Heavy> => ({
    jpegs: await pictures.makeHeavy(megabytes * megabyte - 1024, ['jpeg'], 2),
    others: await pictures.makeHeavy(megabytes * megabyte - 1024, ['progressive', 'png'], 2),
  })
  const [eight, sixteen] = [await make(8), await make(16)]
  return [
    ...(await compare({}, '', eight)),
    // A process opens the second model at its first suspicious picture; eventually all have both.
    ...(await compare(thorough, bothOpen, eight)),
    ...(await measureEngine({}, '', sixteen)),
    ...(await measureEngine(thorough, bothOpen, sixteen)),
  ]
}

async function compare(settings: Record<string, string>, note: string, { jpegs, others }: Heavy) {
  const isDefault = note === ''
  const setting = await openSetting({ peers: isDefault ? ['wasm'] : [], hasFloor: false, settings })
  try {
    const peer = isDefault ? await measurePeer(setting, jpegs) : undefined
    const ofJpegs = await measureService(setting, jpegs)
    const ofOthers = await measureService(setting, others)
    const what = `memory, ${atOnce} pictures of 8 MB at once`
    return [
      {
        what: `${what}, JPEG${note}`,
        ours: toText(ofJpegs),
        against: peer === undefined ? '' : `nsfwjs, WASM: ${Math.round(peer)} MB`,
        ratio: peer === undefined ? undefined : ofJpegs.peaks / peer,
        wanted,
      },
      {
        what: `${what}, ${ofOthersText}${note}`,
        ours: toText(ofOthers),
        against: '',
        ratio: undefined,
        wanted,
      },
    ]
  } finally {
    await setting.close()
  }
}

async function measureService({ service, load, whenIdle }: Setting, files: string[]): Promise<Held> {
  const target = { url: service.url, headers: service.headers, expected: '"classification_clean"' }
  // The first load makes the service start as many processes as it will use.
  await load.run({ target, files, rounds: Math.ceil(atOnce / files.length), connections: atOnce })
  await whenIdle()
  const rounds = Math.ceil((atOnce * 2) / files.length)
  return watch(
    () => listImageProcesses(service.pid),
    () => load.run({ target, files, rounds, connections: atOnce }),
  )
}

async function measurePeer({ getPeer, load }: Setting, files: string[]): Promise<number> {
  const peer = getPeer('wasm')
  const target = { url: peer.url, headers: [], expected: '"className"' }
  const rounds = Math.ceil(atOnce / files.length)
  const { peaks } = await watch(
    () => [peer.pid],
    () => load.run({ target, files, rounds, connections: atOnce }),
  )
  return peaks
}

/** The service accepts 16 MB only in background jobs. The process of the engine holds all pictures here. */
async function measureEngine(more: Record<string, string>, note: string, { jpegs, others }: Heavy): Promise<Row[]> {
  const { dir, startWorker, close } = openChildren()
  try {
    const settings = JSON.stringify({ ASSAY_DATA_DIR: dir, ...more })
    const engine = startWorker<EngineJob, EngineResult>(new URL('./nsfw-engine.ts', import.meta.url), [settings])
    const measure = async (files: string[], form: string): Promise<Row> => {
      await engine.run({ files, rounds: Math.ceil(atOnce / files.length), atOnce })
      const held = await watch(
        () => listTree(engine.pid),
        () => engine.run({ files, rounds: Math.ceil((atOnce * 2) / files.length), atOnce }),
      )
      const what = `memory, ${atOnce} pictures of 16 MB at once, ${form}, engine without HTTP${note}`
      return { what, ours: toText(held), against: '', ratio: undefined, wanted: '' }
    }
    return [await measure(jpegs, 'JPEG'), await measure(others, ofOthersText)]
  } finally {
    await close()
  }
}

/**
 * Megabytes: the sum of the peaks of all processes, the peak of their sum, and that with shared memory counted once.
 */
type Held = { peaks: number; atOneTime: number; shares: number }

async function watch(list: () => number[], work: () => Promise<unknown>): Promise<Held> {
  const known = new Set(list())
  for (const pid of known) forgetPeak(pid)
  let [atOneTime, shares] = [0, 0]
  const sampleMemory = () => {
    atOneTime = Math.max(atOneTime, sum([...known].map(readMegabytes)))
    shares = Math.max(shares, readMegabytesTogether([...known]))
  }
  const timer = setInterval(sampleMemory, 100)
  await work().finally(() => clearInterval(timer))
  const after = list()
  if (after.some((pid) => !known.has(pid)) || after.length !== known.size) {
    process.stderr.write('  a process ended or was added meanwhile\n')
  }
  const each = after.map(readPeakMegabytes)
  process.stderr.write(
    `  peaks ${each.map((peak) => Math.round(peak)).join(' + ')} MB; at one time ${Math.round(atOneTime)} MB, ` +
      `with what is shared counted once ${Math.round(shares)} MB\n`,
  )
  return { peaks: sum(each), atOneTime, shares }
}

const toText = ({ peaks, shares }: Held) => `${Math.round(peaks)} MB, shared once ${Math.round(shares)} MB`
