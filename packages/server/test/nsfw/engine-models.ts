import { pino } from 'pino'
import { builtDir } from '../../src/engines/nsfw/models/manifest.ts'
import { type Model, openModels } from '../../src/engines/nsfw/models/open-models.ts'

let opened: Promise<Model[]> | undefined

/** Both models as int8; made on the spot where they were not made before. */
export function openTestModels(): Promise<Model[]> {
  opened ??= openModels({
    dirs: [builtDir],
    names: ['mobilenet-v2-mid', 'inception-v3'],
    precision: 'int8',
    log: pino({ level: 'warn' }),
  })
  return opened
}
