import { readFileSync } from 'node:fs'
import type { ImageReport } from '../../packages/server/src/domain/ports/engines.ts'
import { openClassifier } from '../../packages/server/src/engines/nsfw/child/classifier.ts'
import type { Opening } from '../../packages/server/src/engines/nsfw/requests.ts'

/** Scans each picture `rounds` times, beginning with `first`, or returns the scores of one. */
export type FloorJob = { files: string[]; rounds: number; first: number } | { file: string }
export type FloorResult = { perSecond: number } | { report: ImageReport }

/**
 * Decoding and inference alone, as the image processes of the service do them: the upper bound of one process
 * without receiving, admission, hashing and recording.
 */
const classifier = openClassifier(JSON.parse(process.argv[2] ?? '') as Opening)

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: FloorJob) => {
  const work = 'file' in job ? score(job.file) : measure(job)
  work.then(
    (result: FloorResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

async function score(file: string): Promise<FloorResult> {
  const { classify } = await classifier
  return { report: await classify(readFileSync(file)) }
}

async function measure({ files, rounds, first }: Extract<FloorJob, { files: string[] }>): Promise<FloorResult> {
  const { classify } = await classifier
  const pictures = files.map((file) => readFileSync(file))
  const start = performance.now()
  for (let i = 0; i < files.length * rounds; i++) {
    await classify(pictures[(first + i) % files.length] as Buffer)
  }
  return { perSecond: (files.length * rounds * 1000) / (performance.now() - start) }
}
