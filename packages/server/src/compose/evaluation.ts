import type { Label } from '../engines/nsfw/models/model.ts'

/** The sum of sexy and pornography by model; undefined for a picture that could not be scanned. */
export type Scored = { name: string; label: Label; scores: Record<string, number | undefined> }

export type ModelEvaluation = {
  model: string
  threshold: number
  scanned: number
  unscanned: string[]
  /** Numbers of pictures with a score from 0 to 0.1, from 0.1 to 0.2, and so on. */
  distribution: number[]
  /** Pictures that are clean by their label and threats by their score, the highest first. */
  falsePositives: { picture: string; score: number }[]
  falsePositiveRate: number | undefined
  /** Pictures that are not clean by their label and clean by their score, the lowest first. */
  missed: { picture: string; score: number }[]
  /** The lowest threshold at which at most the wanted share of clean pictures are threats; undefined when none is. */
  wantedThreshold: number | undefined
}

export type Evaluation = {
  pictures: number
  rate: number
  models: ModelEvaluation[]
  /** Pictures that are a threat to some models and clean to others. */
  disagreements: { picture: string; label: Label; scores: Record<string, number> }[]
}

/** Compares the models; `thresholds` names them. */
export function evaluate(scored: Scored[], thresholds: Record<string, number>, rate: number): Evaluation {
  const names = Object.keys(thresholds)
  const models = names.map((model) => evaluateModel(model, scored, thresholds[model] ?? 0, rate))
  const disagreements = scored.flatMap(({ name, label, scores }) => {
    const known = names.flatMap((model) => (scores[model] === undefined ? [] : [[model, scores[model]] as const]))
    const verdicts = new Set(known.map(([model, score]) => score >= (thresholds[model] ?? 0)))
    return verdicts.size < 2 ? [] : [{ picture: name, label, scores: Object.fromEntries(known) }]
  })
  return { pictures: scored.length, rate, models, disagreements }
}

const buckets = 10

function evaluateModel(model: string, pictures: Scored[], threshold: number, rate: number): ModelEvaluation {
  const scored = pictures.flatMap(({ name: picture, label, scores }) => {
    const score = scores[model]
    return score === undefined ? [] : [{ picture, label, score }]
  })
  const distribution = Array.from({ length: buckets }, () => 0)
  for (const { score } of scored) {
    const at = Math.min(buckets - 1, Math.floor(score * buckets))
    distribution[at] = (distribution[at] ?? 0) + 1
  }
  const pick = ({ picture, score }: { picture: string; score: number }) => ({ picture, score })
  const clean = scored.filter(({ label }) => label === 'clean').sort((a, b) => b.score - a.score)
  const unsafe = scored.filter(({ label }) => label !== 'clean').sort((a, b) => a.score - b.score)
  const falsePositives = clean.filter(({ score }) => score >= threshold).map(pick)
  return {
    model,
    threshold,
    scanned: scored.length,
    unscanned: pictures.filter(({ scores }) => scores[model] === undefined).map(({ name }) => name),
    distribution,
    falsePositives,
    falsePositiveRate: clean.length === 0 ? undefined : falsePositives.length / clean.length,
    missed: unsafe.filter(({ score }) => score < threshold).map(pick),
    wantedThreshold: findThreshold(
      clean.map(({ score }) => score),
      rate,
    ),
  }
}

/** Manifests take thresholds from 0.01 to 0.99. */
const range = { least: 0.01, most: 0.99 }
const steps = 10_000

/** `scores` are those of clean pictures, the highest first. */
function findThreshold(scores: number[], rate: number): number | undefined {
  if (scores.length === 0) return undefined
  // The highest score that must stay below the threshold.
  const highest = scores[Math.floor(rate * scores.length)] ?? 0
  const threshold = Math.max(range.least, (Math.floor(highest * steps) + 1) / steps)
  return threshold > range.most ? undefined : threshold
}
