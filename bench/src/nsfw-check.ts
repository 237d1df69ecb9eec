import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { ImageReport } from '../../packages/server/src/domain/ports/engines.ts'
import { decideImage, imageThresholds } from '../../packages/server/src/domain/scans/image-scan.ts'
import type { Server } from './children.ts'
import type { NsfwPeer, Setting } from './nsfw-setting.ts'

type Prediction = { className: string; probability: number }
type PeerAnswer = { backend: string; predictions: Prediction[] }
type OurAnswer = { status: string; metadata: { classification_clean: string } }

/**
 * Checks the results, because otherwise a comparison is meaningless. All peers call the first picture
 * harmless, and Assay gives each picture the same score as its models alone, with the same views and parts. Returns the
 * pictures that Assay looks at once, because they have no parts and are not suspicious.
 */
export async function checkAll(setting: Setting, files: string[], peers: NsfwPeer[]): Promise<string[]> {
  const { service, floor, getPeer } = setting
  const [first = ''] = files
  const wrong: string[] = []
  const simple: string[] = []
  let looks = 0
  for (const file of files) {
    const ours = await post<OurAnswer>(service, file, service.headers)
    if (ours.status !== 'clean') wrong.push(basename(file))
    const theirs = await floor[0]?.run<{ report: ImageReport }>({ file })
    if (!isSame(ours, theirs?.report)) {
      throw new Error(`Of ${file} Assay says ${JSON.stringify(ours)} and the floor ${JSON.stringify(theirs)}`)
    }
    const count = theirs !== undefined && 'frames' in theirs.report ? theirs.report.frames.length : 0
    looks += count
    if (count === 1) simple.push(file)
  }
  process.stderr.write(`  Assay calls ${files.length - wrong.length} of ${files.length} clean ${wrong.join(' ')}\n`)
  process.stderr.write(`  ${simple.length} are looked at once, all together ${looks} times\n`)
  if (wrong.includes(basename(first))) throw new Error(`Assay does not call ${first} clean`)
  for (const name of peers) await checkPeer(name, getPeer(name), first)
  return simple
}

/** The worst of all views and parts decides on both sides. */
function isSame({ status, metadata }: OurAnswer, report: ImageReport | undefined): boolean {
  if (report === undefined) return false
  const floor = decideImage(report, { threshold: imageThresholds.default, flagsSexy: true })
  const difference = Number(floor.metadata.classification_clean) - Number(metadata.classification_clean)
  return floor.status === status && Math.abs(difference) < 0.001
}

async function checkPeer(name: NsfwPeer, peer: Server, file: string) {
  const { backend, predictions } = await post<PeerAnswer>(peer, file, [])
  const wanted = name === 'script' ? 'cpu' : 'wasm'
  if (backend !== wanted) throw new Error(`nsfwjs runs on ${backend} and not on ${wanted}`)
  const text = predictions.map(({ className, probability }) => `${className} ${probability.toFixed(3)}`).join(', ')
  process.stderr.write(`  nsfwjs (${name}) says of ${basename(file)}: ${text}\n`)
  const [top] = predictions
  if (top === undefined || !['Neutral', 'Drawing'].includes(top.className)) {
    throw new Error(`nsfwjs (${name}) says of ${file}: ${text}`)
  }
}

async function post<T>({ url }: Server, file: string, headers: string[]): Promise<T> {
  const body = new FormData()
  body.set('file', new Blob([readFileSync(file)]), basename(file))
  const pairs = headers.map((header) => header.split(': ') as [string, string])
  const answer = await fetch(url, { method: 'POST', body, headers: pairs })
  const text = await answer.text()
  if (answer.status !== 201) throw new Error(`${url} answers ${answer.status} ${text} to ${file}`)
  return JSON.parse(text) as T
}
