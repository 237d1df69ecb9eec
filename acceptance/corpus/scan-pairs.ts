import { toVerdict, uploadTo, type Verdict } from '../support/scanning.ts'
import { waitUntil } from '../support/wait-until.ts'
import type { Pair } from './corpus.ts'
import { findFault } from './judge.ts'

export type Scanned = Pair & {
  verdict: Verdict
  twinVerdict: Verdict
  /** Verdicts that differ from the expectation, each as a sentence; empty when both are right. */
  faults: string[]
}

/** Scans samples and their twins, four at a time. */
export async function scanPairs(url: string, key: string, pairs: Pair[]): Promise<Scanned[]> {
  const scan = async (bytes: Buffer, { form, name }: Pair) => {
    let answer = await uploadTo(url, key, bytes, name)
    // On a busy machine a sample can wait longer than the service lets it. The response says to try again.
    await waitUntil('a place for the sample', async () => {
      if (answer.status === 503) answer = await uploadTo(url, key, bytes, name)
      return answer.status !== 503
    })
    return toVerdict(answer, `${form.name} ${name}`)
  }
  return mapParallel(pairs, 4, async (pair) => {
    const verdict = await scan(pair.bytes, pair)
    const twinVerdict = await scan(pair.twin, pair)
    const fault = findFault(pair.expectation, 'eicar', verdict)
    const twinFault = findFault(pair.expectation, 'harmless', twinVerdict)
    const faults = [
      ...(fault === undefined ? [] : [`with EICAR ${fault}`]),
      ...(twinFault === undefined ? [] : [`with a harmless text ${twinFault}`]),
    ]
    return { ...pair, verdict, twinVerdict, faults }
  })
}

/** Runs a function on all items, `count` at a time, and keeps their order. */
export async function mapParallel<Item, Result>(
  items: Item[],
  count: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const work = async () => {
    for (let n = next++; n < items.length; n = next++) results[n] = await run(items[n] as Item)
  }
  await Promise.all(Array.from({ length: count }, work))
  return results
}
