import type { Kind } from '../scanning/limits.ts'
import { toBytes, toCount } from './numbers.ts'
import type { Tally } from './tally.ts'

/** Like that of clamscan; lines that would say nothing are left out. */
export function toSummary(tally: Tally, kind: Kind): string {
  const seconds = (Date.now() - tally.startedAt) / 1000
  const { directories, empty, skipped, submitted, unfinished, errors, credits } = tally
  const lines = [
    directories > 0 && `Scanned directories: ${toCount(directories)}`,
    `Scanned files: ${toCount(tally.scanned)}`,
    `${kind === 'nsfw' ? 'Unsafe images' : 'Infected files'}: ${toCount(tally.threats)}`,
    submitted > 0 && `Submitted files: ${toCount(submitted)}`,
    errors > 0 && `Total errors: ${toCount(errors)}`,
    empty > 0 && `Empty files: ${toCount(empty)}`,
    skipped > 0 && `Not scanned: ${toCount(skipped)} (links and special files${kind === 'nsfw' ? ', no images' : ''})`,
    unfinished > 0 && `Interrupted: ${toCount(unfinished)} ${unfinished === 1 ? 'file was' : 'files were'} under way`,
    `Data scanned: ${toBytes(tally.bytes)}`,
    credits && `Credits left: ${toCount(credits.remaining)} of ${toCount(credits.limit)}`,
    `Time: ${seconds.toFixed(3)} sec (${Math.floor(seconds / 60)} m ${Math.floor(seconds % 60)} s)`,
  ]
  return `\n----------- SCAN SUMMARY -----------\n${lines.filter((line) => typeof line === 'string').join('\n')}\n`
}
