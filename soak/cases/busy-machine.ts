import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { forms, listLacking, makePairs, type Pair } from '../../acceptance/corpus/corpus.ts'
import { mapParallel } from '../../acceptance/corpus/scan-pairs.ts'
import { installAllTools } from '../../acceptance/corpus/tools.ts'
import { toVerdict, uploadTo } from '../../acceptance/support/scanning.ts'
import type { Case } from '../case.ts'
import { toText } from '../counts.ts'
import { withInstallation } from '../installation.ts'

const containers = 200
const busyProcesses = 4

export const soak: Case = {
  about: `${containers} containers of the corpus are scanned on a quiet machine and beside ${busyProcesses} busy processes`,
  async run() {
    installAllTools()
    const samples = chooseSamples()
    assert.equal(samples.length, containers)
    // Each run has a service of its own, because the verdict cache must not answer.
    const quiet = await scanAll(samples)
    const busy = Array.from({ length: busyProcesses }, () => spawn(process.execPath, ['-e', 'for (;;);']))
    try {
      const loaded = await scanAll(samples)
      const differing = samples.flatMap(({ form, name }, n) =>
        quiet[n] === loaded[n] ? [] : [`${form.name} ${name}: ${quiet[n]}, then ${loaded[n]}`],
      )
      assert.deepEqual(differing, [])
    } finally {
      for (const child of busy) child.kill('SIGKILL')
    }
    const counts = new Map<string, number>()
    for (const verdict of quiet) counts.set(verdict, (counts.get(verdict) ?? 0) + 1)
    return `the same verdicts both times: ${toText(counts)}`
  },
}

/** Takes one sample of each form in turn, so that all forms are there. */
function chooseSamples(): Pair[] {
  const byForm = forms.filter((form) => listLacking(form).length === 0).map((form) => makePairs(form))
  const longest = Math.max(...byForm.map((pairs) => pairs.length))
  return Array.from({ length: longest }, (_, n) => byForm.flatMap((pairs) => pairs[n] ?? []))
    .flat()
    .slice(0, containers)
}

const scanAll = (samples: Pair[]): Promise<string[]> =>
  withInstallation({}, ({ url, apiKey }) =>
    mapParallel(samples, 4, async ({ form, name, bytes }) => {
      const about = `${form.name} ${name}`
      const { status, signals } = toVerdict(await uploadTo(url, apiKey, bytes, name), about)
      return [status, ...signals.toSorted()].join(' ')
    }),
  )
