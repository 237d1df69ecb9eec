import { createHash } from 'node:crypto'
import type { EngineState } from '../../domain/ports/engines.ts'
import type { ModelName } from './models/manifest.ts'
import type { Model } from './models/open-models.ts'
import type { Profile } from './wire.ts'

/** Raise when the same models would score otherwise by a change of ours. */
const revision = 'assay-nsfw-1'

const titles: Record<ModelName, string> = { 'mobilenet-v2-mid': 'MobileNetV2Mid', 'inception-v3': 'InceptionV3' }

/** `nsfwjs MobileNetV2Mid+InceptionV3 int8`, and a hash of everything that the scores depend on. */
export function toImageEngineState(
  settings: { models: Model[]; profile: Profile; suspicion: number },
  versions: Record<string, string>,
): EngineState {
  const { models, profile, suspicion } = settings
  const names = models.map(({ name }) => titles[name]).join('+')
  const precisions = [...new Set(models.map(toPrecision))].join('+')
  const basis = [revision, models.map(({ name, sha256 }) => [name, sha256]), profile, suspicion, versions]
  return {
    version: `nsfwjs ${names} ${precisions}`,
    verdictVersion: createHash('sha256').update(JSON.stringify(basis)).digest('hex'),
    signatures: undefined,
    signaturesAt: undefined,
  }
}

/** As the name of the file tells. What is made of eight bits for this or that processor is the same to who reads it. */
const toPrecision = ({ path }: Model) => (path.endsWith('.fp32.onnx') ? 'fp32' : 'int8')
