import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const main = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url))
const picturesAtOnce = 50

/** Scores (clean, pornography, sexy) by Assay from files, with the same model as nsfwjs. */
export async function scanWhole(pictures: string[], dataDir: string): Promise<number[][]> {
  const scores: number[][] = []
  for (let at = 0; at < pictures.length; at += picturesAtOnce) {
    const some = pictures.slice(at, at + picturesAtOnce)
    // The command exits with 1 or 2 for a threat or an error; only its output matters.
    const { stdout } = await promisify(execFile)(process.execPath, [main, 'scan', '--nsfw', '--json', ...some], {
      env: { ...process.env, ASSAY_NSFW_PROFILE: 'fast', ASSAY_DATA_DIR: dataDir },
      maxBuffer: 64 * 1024 * 1024,
    }).catch((error: { stdout: string }) => error)
    const results = JSON.parse(stdout) as { metadata: Record<string, string> }[]
    scores.push(...results.map(({ metadata }) => toLabels(metadata)))
  }
  return scores
}

const toLabels = (metadata: Record<string, string>) =>
  ['clean', 'pornography', 'sexy'].map((label) => Number(metadata[`classification_${label}`] ?? Number.NaN))
