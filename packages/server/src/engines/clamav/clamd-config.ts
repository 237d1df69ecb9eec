import { maxUnpackedBytes } from '../../domain/ports/engines.ts'

/**
 * The settings of our own clamd. The limits are wide enough that whatever our size limits let in is looked at whole; what
 * exceeds them all the same is reported, never passed over. Measured: with MaxFileSize at 260M a member of 300 MB in a
 * zip of 306 KB was passed over without a word.
 */
export function toClamdConfig(options: {
  databaseDir: string
  socket: string
  scratchDir: string
  threads: number
}): string {
  const settings: [name: string, value: string | number][] = [
    ['Foreground', 'yes'],
    ['LocalSocket', options.socket],
    ['LocalSocketMode', '660'],
    ['FixStaleSocket', 'yes'],
    ['DatabaseDirectory', options.databaseDir],
    ['TemporaryDirectory', options.scratchDir],
    ['LeaveTemporaryFiles', 'no'],
    ['LogTime', 'no'],
    ['LogClean', 'no'],
    ['ExtendedDetectionInfo', 'no'],

    ['MaxThreads', options.threads],
    ['MaxQueue', 200],
    // Everything is received before clamd is called, so that it never waits for a client of ours.
    ['ReadTimeout', 60],
    ['CommandReadTimeout', 10],
    ['IdleTimeout', 300],
    // We watch the database ourselves and say when to reload; with `yes` the old one serves until the new one is ready.
    ['SelfCheck', 0],
    ['ConcurrentDatabaseReload', 'yes'],
    ['BytecodeUnsigned', 'no'],
    ['BytecodeTimeout', 20_000],

    // As much as a member may have: those of containers that clamd cannot open are streamed to it one by one.
    ['StreamMaxLength', maxUnpackedBytes],
    ['MaxFileSize', maxUnpackedBytes],
    ['MaxScanSize', maxUnpackedBytes],
    ['MaxScanTime', 45_000],
    ['MaxRecursion', 20],
    ['MaxFiles', 50_000],
    ['MaxEmbeddedPE', '100M'],
    ['MaxHTMLNormalize', '100M'],
    ['MaxHTMLNoTags', '20M'],
    ['MaxScriptNormalize', '50M'],
    ['PCREMaxFileSize', '260M'],
    ['AlertExceedsMax', 'yes'],
    ['AlertEncrypted', 'yes'],
    ['AlertEncryptedArchive', 'yes'],
    ['AlertEncryptedDoc', 'yes'],
    ['HeuristicScanPrecedence', 'no'],
  ]
  return `${settings.map(([name, value]) => `${name} ${value}`).join('\n')}\n`
}
