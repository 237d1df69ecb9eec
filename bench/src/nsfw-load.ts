import { randomBytes } from 'node:crypto'
import { toMedian } from './children.ts'
import { readPicture } from './nsfw-picture.ts'
import { type HttpTarget, newForm, openHttp } from './upload.ts'

/** Uploads each picture `rounds` times with different bytes; the next free connection takes the next one. */
export type PictureJob = { target: HttpTarget; files: string[]; rounds: number; connections: number }
export type PictureResult = {
  perSecond: number
  p50Ms: number
  /** Median duration of the uploads of each picture. */
  p50MsOfEach: number[]
}

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: PictureJob) => {
  upload(job).then(
    (result: PictureResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

async function upload({ target, files, rounds, connections }: PictureJob): Promise<PictureResult> {
  const pictures = files.map(readPicture)
  const seed = randomBytes(4).toString('hex')
  const times: number[][] = files.map(() => [])
  let next = 0

  const work = async () => {
    const line = openHttp(target)
    const forms = pictures.map((picture, i) => {
      const content = picture.newContent()
      return { content, form: newForm(target, content, files[i]?.split('/').at(-1) ?? '') }
    })
    try {
      for (let turn = next++; turn < files.length * rounds; turn = next++) {
        const picture = turn % files.length
        const next = forms[picture]
        if (next === undefined) throw new Error('There are no pictures to send')
        next.content.stamp(`${seed}${turn.toString(16).padStart(8, '0')}`)
        const start = performance.now()
        await line.send(next.form)
        times[picture]?.push(performance.now() - start)
      }
    } finally {
      line.close()
    }
  }

  const start = performance.now()
  await Promise.all(Array.from({ length: connections }, work))
  const seconds = (performance.now() - start) / 1000
  const all = times.flat()
  return { perSecond: all.length / seconds, p50Ms: toMedian(all), p50MsOfEach: times.map(toMedian) }
}
