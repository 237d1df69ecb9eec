import { resolve } from 'node:path'
import { openChildren, sum, toMedian, whenIdle } from './children.ts'
import { checkHeld, drainQueue, fillQueue } from './jobs-drain.ts'
import type { LoadResult, SubmitJob } from './jobs-load.ts'
import { closeAll, openTarget, type Target } from './jobs-setting.ts'
import type { Row } from './results.ts'

const [warmUp, submits] = [2000, 6000]
const connections = 64

/** A turn of one version: rates, and processor time of each job in microseconds by process. */
type Turn = { perSecond: number; each: Record<string, number> }
type Work = 'submit' | 'drain'

/**
 * Compares submissions and the drain of the queue with the version in another directory, in alternating turns. Ratios
 * are medians of the ratios of two turns that followed each other.
 */
export async function compareVersions(root: string, turns: number): Promise<Row[]> {
  const children = openChildren()
  const targets: Target[] = []
  try {
    const load = children.startWorker<SubmitJob, LoadResult>(new URL('./jobs-load.ts', import.meta.url))
    const ours = await openTarget(children, { name: 'ours' })
    targets.push(ours)
    const other = await openTarget(children, { name: 'other', root: resolve(root) })
    targets.push(other)
    const takeTurn = (target: Target, count: number) => measure({ ...target, load }, count)
    for (const target of targets) await takeTurn(target, warmUp)
    const pairs: Record<'ours' | 'other', Record<Work, Turn>>[] = []
    for (let pass = 0; pass < turns; pass++) {
      const isOursFirst = pass % 2 === 0
      const first = await takeTurn(isOursFirst ? ours : other, submits)
      const second = await takeTurn(isOursFirst ? other : ours, submits)
      const pair = isOursFirst ? { ours: first, other: second } : { ours: second, other: first }
      pairs.push(pair)
      for (const work of ['submit', 'drain'] as const) {
        process.stderr.write(`  ${work}: ${toText(pair.ours[work])}; the other version ${toText(pair.other[work])}\n`)
      }
    }
    return (['submit', 'drain'] as const).flatMap((work) =>
      toRows(
        work,
        pairs.map((pair) => [pair.ours[work], pair.other[work]]),
      ),
    )
  } finally {
    await closeAll([...targets.map(({ close }) => close), children.close])
  }
}

async function measure(target: Parameters<typeof fillQueue>[0], count: number): Promise<Record<Work, Turn>> {
  const watch = async <T extends { perSecond: number }>(work: () => Promise<T>): Promise<T & Turn> => {
    await whenIdle(target.cpu)
    const before = target.cpu()
    const result = await work()
    const used = Object.entries(target.cpu()).map(([name, at]) => [name, at - (before[name] ?? 0)] as const)
    return { ...result, each: Object.fromEntries(used.map(([name, seconds]) => [name, (seconds * 1e6) / count])) }
  }
  await target.hold.hold()
  const submit = await watch(() => fillQueue(target, { count, connections }))
  await checkHeld(target, submit)
  return { submit, drain: await watch(() => drainQueue(target, submit)) }
}

const names: Record<Work, string> = {
  submit: `POST /v1/malware/submit/file, 1 KB, ${connections} connections, worker held`,
  drain: `${submits} queued jobs of 1 KB`,
}

function toRows(work: Work, turns: [ours: Turn, other: Turn][]): Row[] {
  const median = (version: 0 | 1, find: (turn: Turn) => number) => toMedian(turns.map((pair) => find(pair[version])))
  const ratio = (find: (turn: Turn) => number) => toMedian(turns.map(([ours, other]) => find(ours) / find(other)))
  const rate = (version: 0 | 1) => `${median(version, ({ perSecond }) => perSecond).toFixed(0)}/s`
  const cost = (version: 0 | 1) =>
    Object.keys(turns[0]?.[version].each ?? {})
      .map((name) => `${name} ${median(version, ({ each }) => each[name] ?? 0).toFixed(0)} µs`)
      .join(', ')
  return [
    {
      what: names[work],
      ours: rate(0),
      against: `the other version: ${rate(1)}`,
      ratio: ratio(({ perSecond }) => perSecond),
      wanted: 'at least 1.5',
    },
    {
      what: `${names[work]}, processor time of each`,
      ours: cost(0),
      against: `the other version: ${cost(1)}`,
      ratio: ratio(toTotal),
      wanted: '',
    },
  ]
}

const toTotal = ({ each }: Turn) => sum(Object.values(each))

const toText = (turn: Turn) => {
  const parts = Object.entries(turn.each).map(([name, micros]) => `${name} ${micros.toFixed(0)}`)
  return `${turn.perSecond.toFixed(0)}/s (µs: ${parts.join(', ')})`
}
