import type { ImageReport, Scores } from '../ports/engines.ts'

/**
 * What EICAR is for viruses: cards of plain text (docs/test-images) that are known by their SHA-256 and get the verdict they
 * stand for, so that integrators can test what their software does with it.
 */
const testImages: Record<string, TestLabel> = {
  b04e0575aa073f717811a0598e17d6fbae66a39e8dc24c5c48b53a81335f5365: 'pornography',
  '28e20547c80c6a072c9845ff97c764f7d56fb1189dd55f3aa1206068db5685b2': 'sexy',
}

type TestLabel = 'pornography' | 'sexy'

export const testScores: Record<TestLabel, Scores> = {
  pornography: { clean: 0.01, pornography: 0.97, sexy: 0.02 },
  sexy: { clean: 0.01, pornography: 0.02, sexy: 0.97 },
}

export const findTestImage = (sha256: string): TestLabel | undefined => testImages[sha256]

export function findTestReport(sha256: string): { report: ImageReport; version: string } | undefined {
  const label = findTestImage(sha256)
  if (label === undefined) return undefined
  return { report: { frames: [{ index: 0, ...testScores[label] }], isAnimated: false }, version: 'Assay test image' }
}
