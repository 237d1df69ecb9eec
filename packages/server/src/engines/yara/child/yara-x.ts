import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Compiler, initSync } from '@virustotal/yara-x'
import manifest from '@virustotal/yara-x/package.json' with { type: 'json' }
import { compileLibrary } from '../../child-process/late-flags.ts'
import type { Refused } from '../requests.ts'
import { type Backend, externals, type RuleSet, type RuleText } from './backend.ts'

/** Each scan leaves 72 KB behind, and the memory for large content is never freed. */
const maxIdleBytes = 640 * 1024 * 1024

type Match = { identifier: string; isPrivate: boolean }

/**
 * The WebAssembly build, for machines without libyara. Each scan costs 3 ms, because it instantiates the rules again.
 * Its own time-out does not fire: the service must kill the process.
 */
export function makeYaraX(): Backend {
  const modulePath = fileURLToPath(import.meta.resolve('@virustotal/yara-x'))
  initSync({ module: compileLibrary(readFileSync(modulePath.replace(/\.js$/, '_bg.wasm'))) })
  return {
    version: `YARA-X ${manifest.version}`,
    build: `yara-x ${manifest.version}`,
    compile,
    needsReplacement: () => process.memoryUsage.rss() > maxIdleBytes,
  }
}

function compile(files: RuleText[]): RuleSet | Refused {
  const compiler = new Compiler()
  try {
    for (const name of externals) compiler.defineGlobal(name, '')
    let rules = 0
    for (const [index, { file, text }] of files.entries()) {
      const source = text.toString('utf8')
      try {
        compiler.newNamespace(`file${index}`)
        compiler.addSource(source)
      } catch (error) {
        return { file, reason: toReason(error) }
      }
      rules += countRules(source)
    }
    return newSet(compiler, rules)
  } finally {
    compiler.free()
  }
}

function newSet(compiler: Compiler, rules: number): RuleSet {
  const built = compiler.build()
  const scanner = built.scanner()
  // By default YARA-X silently stops counting after a million matches: padding could hide what follows.
  scanner.setMaxMatchesPerPattern(0xffff_ffff)
  return {
    rules,
    scan(content) {
      const result: { valid: boolean; errors: string[]; matches: Match[] } = scanner.scan(content)
      if (!result.valid) throw new Error(`YARA-X: ${result.errors.join('; ').slice(0, 500)}`)
      const findings = result.matches.filter(({ isPrivate }) => !isPrivate).map(({ identifier }) => identifier)
      return { findings, limited: false }
    },
    free() {
      scanner.free()
      built.free()
    },
  }
}

/** Makes one line of `error[E009]: unknown identifier ...`, which has a drawing below it. */
function toReason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const [, what, line] = text.match(/^error\[\w+\]: (.*)\n\s*--> line:(\d+)/) ?? []
  return what === undefined ? text.slice(0, 500) : `line ${line}: ${what}`
}

/** Counts the rules, because the package does not. Skips text in quotes and comments. */
function countRules(source: string): number {
  let rules = 0
  for (const [, name] of source.matchAll(/"(?:\\.|[^"\\\n])*"|\/\*[\s\S]*?\*\/|\/\/.*|\brule\s+([a-z_]\w*)/gi)) {
    if (name !== undefined) rules++
  }
  return rules
}
