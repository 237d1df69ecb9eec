import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { OptionReader } from '../../../runtime/toml-options.ts'
import type { ExternalKind } from '../adapter.ts'
import { type CommandSettings, filePlaceholder, openCommandAdapter } from './command-adapter.ts'

const absolute = /^\//
/** The code with which the loader ends a program that lacks a library, and shells one that they do not find. */
const loaderCodes = [126, 127]

/** A program that scans one file and tells by its exit code what it found. */
export const commandKind: ExternalKind = {
  read(options) {
    const settings = readSettings(options)
    return (deps) => openCommandAdapter(settings, deps)
  },
}

function readSettings(options: OptionReader): CommandSettings {
  const program = options.requireText('program', '"/usr/bin/clamscan"', absolute, 'must be the path of a program')
  if (isAbsolute(program) && !isExecutable(program)) options.note('program', 'is not a program that can be executed')
  const args = options.texts('args', /^[^\0]*$/, 'must be a list of texts') ?? []
  if (args.filter((arg) => arg.includes(filePlaceholder)).length > 1) {
    options.note('args', `must name ${filePlaceholder} once, or not at all for a program that reads its standard input`)
  }
  const reads = options.texts('reads', absolute, 'must be a list of paths that the program may read') ?? []
  for (const path of reads) if (!existsSync(path)) options.note('reads', `names ${path}, which does not exist`)
  return {
    program,
    args,
    reads,
    ...readCodes(options),
    threatPattern: options.pattern('threat_pattern', undefined),
    memoryMb: options.wholeNumber('memory_mb', { min: 16, max: 1_000_000, fallback: 2048 }),
    scratchMb: options.wholeNumber('scratch_mb', { min: 1, max: 1_000_000, fallback: 1024 }),
    processorSeconds: options.wholeNumber('cpu_seconds', { min: 1, max: 3600, fallback: 60 }),
  }
}

function readCodes(options: OptionReader) {
  const cleanCodes = options.wholeNumbers('clean_exit_codes', { min: 0, max: 255, fallback: [0] })
  const threatCodes = options.wholeNumbers('threat_exit_codes', { min: 0, max: 255, fallback: [1] })
  if (cleanCodes.some((code) => threatCodes.includes(code))) {
    options.note('threat_exit_codes', 'and clean_exit_codes must not have a code in common')
  }
  if (cleanCodes.some((code) => loaderCodes.includes(code))) {
    options.note('clean_exit_codes', `must not have ${loaderCodes.join(' or ')}: a program that cannot start ends so`)
  }
  return { cleanCodes, threatCodes }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
