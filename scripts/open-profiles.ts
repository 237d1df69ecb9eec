import { decideImage, imageThresholds } from '../packages/server/src/domain/scans/image-scan.ts'
import type { Verdict } from '../packages/server/src/domain/scans/scan.ts'
import { engineOptions } from '../packages/server/src/engines/child-process/engine-options.ts'
import { openClassifier } from '../packages/server/src/engines/nsfw/child/classifier.ts'
import { defaultSuspicion } from '../packages/server/src/engines/nsfw/image-engine.ts'
import { builtDir } from '../packages/server/src/engines/nsfw/models/manifest.ts'
import { openModels } from '../packages/server/src/engines/nsfw/models/open-models.ts'
import type { Profile } from '../packages/server/src/engines/nsfw/requests.ts'
import { makeLogger } from '../packages/server/src/runtime/logger.ts'

export type OpenedProfile = {
  profile: Profile
  /** The verdict at the usual threshold, its unsafe score, and the processor time that it took. */
  scan(bytes: Buffer): Promise<{ status: Verdict['status']; signals: string[]; score: number; ms: number }>
}

const all: Profile[] = ['fast', 'balanced', 'thorough']

/** Opens the shipped models in this process, once for each of the profiles that are named; for all when none is. */
export async function openProfiles(named: string[]): Promise<OpenedProfile[]> {
  const log = makeLogger({ level: 'warn', region: 'default' })
  const names = ['mobilenet-v2-mid', 'inception-v3'] as const
  const [first, second] = await openModels({ dirs: [builtDir], names: [...names], precision: 'int8', log })
  if (first === undefined) throw new Error('There are no models')
  const wanted = all.filter((profile) => named.length === 0 || named.includes(profile))
  return Promise.all(
    wanted.map(async (profile) => {
      const budgetMs = engineOptions.images.budgetMs[profile]
      const suspicion = defaultSuspicion
      const { classify } = await openClassifier({ models: { first, second }, profile, suspicion, budgetMs })
      return { profile, scan: (bytes) => scan(bytes, classify) }
    }),
  )
}

type Classify = Awaited<ReturnType<typeof openClassifier>>['classify']

async function scan(bytes: Buffer, classify: Classify) {
  const start = process.cpuUsage()
  const report = await classify(bytes)
  const { user, system } = process.cpuUsage(start)
  const verdict = decideImage(report, { threshold: imageThresholds.default, flagsSexy: true })
  const { status, signals, metadata } = verdict
  return { status, signals, score: 1 - Number(metadata.classification_clean ?? 1), ms: (user + system) / 1000 }
}
