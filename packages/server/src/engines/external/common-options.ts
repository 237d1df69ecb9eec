import { defaultVoteRule, type VoteRule } from '../../domain/scans/ballot.ts'
import type { OptionReader } from '../../runtime/toml-options.ts'

/** Options that every kind of engine has. */
export type CommonOptions = {
  name: string
  kind: string
  isRequired: boolean
  timeoutMs: number
  retries: number
  concurrency: number
  seesMembers: boolean
  minBytes: number
  maxBytes: number
  /** Media types, such as `application/pdf` or `image/*`; undefined for all. */
  types: string[] | undefined
  skipTypes: string[] | undefined
  /** How long verdicts with this engine may be taken from the cache; 0 for never. */
  cacheMs: number
  /** Pause between two checks of an engine that has no work. */
  checkMs: number
}

/** Options that say how the findings of an engine count; engines of Assay itself have them too. */
export function readVoteRule(options: OptionReader): VoteRule {
  const weights = { min: 0, max: 9 }
  const weight = options.number('weight', { ...weights, fallback: defaultVoteRule.weight })
  return {
    weight,
    heuristics: options.pattern('heuristics', defaultVoteRule.heuristics),
    heuristicWeight: options.number('heuristic_weight', { ...weights, fallback: weight }),
  }
}

const typeForm = /^[a-z]+\/(?:\*|[\w.+-]+)$/
const typeMust = 'must be a list of media types such as ["application/pdf", "image/*"]'
const maxContentBytes = 1_000_000_000_000

export function readCommonOptions(
  options: OptionReader,
  { name, kind }: { name: string; kind: string },
): CommonOptions {
  const bytes = (option: string, fallback: number) =>
    options.wholeNumber(option, { min: 0, max: maxContentBytes, fallback })
  return {
    name,
    kind,
    isRequired: options.flag('required', true),
    timeoutMs: options.duration('timeout', { min: 100, max: 200_000, fallback: 30_000 }),
    retries: options.wholeNumber('retries', { min: 0, max: 5, fallback: 1 }),
    concurrency: options.wholeNumber('concurrency', { min: 1, max: 256, fallback: 8 }),
    seesMembers: options.oneOf('sees', ['files', 'members'], 'files') === 'members',
    minBytes: bytes('min_bytes', 0),
    maxBytes: bytes('max_bytes', maxContentBytes),
    types: options.texts('types', typeForm, typeMust),
    skipTypes: options.texts('skip_types', typeForm, typeMust),
    cacheMs: options.duration('cache', { min: 0, max: 86_400_000, fallback: 0 }),
    checkMs: options.duration('check_every', { min: 1000, max: 3_600_000, fallback: 30_000 }),
  }
}
