import { readFileSync } from 'node:fs'
import koffi from 'koffi'
import type { Refused } from '../requests.ts'
import { type Backend, externals, type RuleSet, type RuleText } from './backend.ts'

/** The supported libraries, and the offset of the pointer to the name in a rule. Tested with 4.2.3 and 4.5.2. */
const libraries = [
  { soname: 'libyara.so.10', nameOffset: 16 },
  { soname: 'libyara.so.9', nameOffset: 8 },
]

const message = { ruleMatching: 1, tooManyMatches: 6 }
const continueScan = 0
/**
 * Fast mode stops searching for a string whose first match decides. "No try-catch" makes a memory fault end the
 * process, where libyara would catch it and continue. Only matching rules are reported, and no private ones.
 */
const scanFlags = 1 | 4 | 8
/** Errors that the content causes: stack overflow, too many matches, too many threads of a regex. */
const limitErrors = [25, 30, 46]

/** Loads Debian's libyara. Undefined when the machine has no supported version. */
export function findLibyara(): Backend | undefined {
  for (const { soname, nameOffset } of libraries) {
    const library = findLibrary(soname)
    if (library === undefined) continue
    const yara = bind(library)
    check(yara.initialize(), 'yr_initialize')
    const build = findBuild(soname)
    const backend: Backend = {
      version: build.version === undefined ? `YARA (${soname})` : `YARA ${build.version} (libyara)`,
      build: build.name,
      compile: (files) => compile(yara, files, nameOffset),
      // 5,000 scans added 1 MB of memory.
      needsReplacement: () => false,
    }
    if (hasCorrectNameOffset(backend)) return backend
  }
  return undefined
}

/** Names of rules are read at an offset into a structure. A test rule proves that the offset is right. */
function hasCorrectNameOffset(backend: Backend): boolean {
  const probe = backend.compile([{ file: 'probe', text: Buffer.from('rule assay_probe { condition: true }') }])
  if (!('scan' in probe)) return false
  const { findings } = probe.scan(Buffer.alloc(1))
  probe.free()
  return findings.length === 1 && findings[0] === 'assay_probe'
}

function compile(yara: Yara, files: RuleText[], nameOffset: number): RuleSet | Refused {
  const compiler = readPointer((pointer) => check(yara.compilerCreate(pointer), 'yr_compiler_create'))
  let errors: string[] = []
  const onError = koffi.register((level: number, _file: unknown, line: number, _rule: unknown, text: string) => {
    if (level === 0 && errors.length < 3) errors.push(`line ${line}: ${text}`)
  }, koffi.pointer(yara.CompilerNote))
  try {
    yara.compilerSetCallback(compiler, onError, null)
    // `include` is disabled: a rule must not make this process read other files.
    yara.compilerSetIncludeCallback(compiler, null, null, null)
    for (const name of externals) check(yara.compilerDefineString(compiler, name, ''), 'define')
    for (const [index, { file, text }] of files.entries()) {
      errors = []
      // libyara takes a C string and would silently ignore rules after a zero byte.
      if (text.includes(0)) return { file, reason: 'it holds a zero byte' }
      const failed = yara.compilerAddString(compiler, Buffer.concat([text, Buffer.alloc(1)]), String(index))
      if (failed > 0) return { file, reason: errors.join('; ') || 'libyara refused it' }
    }
    const rules = readPointer((pointer) => check(yara.compilerGetRules(compiler, pointer), 'yr_compiler_get_rules'))
    return newSet(yara, rules, nameOffset)
  } finally {
    yara.compilerDestroy(compiler)
    koffi.unregister(onError)
  }
}

function newSet(yara: Yara, rules: Pointer, nameOffset: number): RuleSet {
  // The statistics take 828 bytes in 4.2; only their first number is used.
  const statistics = Buffer.alloc(4096)
  check(yara.rulesGetStats(rules, statistics), 'yr_rules_get_stats')
  const scanner = readPointer((pointer) => check(yara.scannerCreate(rules, pointer), 'yr_scanner_create'))
  let findings: string[] = []
  let limited = false
  const onMessage = koffi.register((_context: unknown, kind: number, data: Pointer) => {
    if (kind === message.ruleMatching) {
      const name = koffi.decode(data, nameOffset, 'uint64_t')
      findings.push(koffi.decode(BigInt(name), 'char', -1))
    }
    // libyara stops counting the string, so a condition on its position or count can fail wrongly.
    if (kind === message.tooManyMatches) limited = true
    return continueScan
  }, koffi.pointer(yara.ScanMessage))
  yara.scannerSetCallback(scanner, onMessage, null)
  yara.scannerSetFlags(scanner, scanFlags)

  return {
    rules: statistics.readUInt32LE(0),
    scan(content) {
      findings = []
      limited = false
      const code = yara.scannerScanMem(scanner, content, content.length)
      if (limitErrors.includes(code)) return { findings, limited: true }
      check(code, 'yr_scanner_scan_mem')
      return { findings, limited }
    },
    free() {
      yara.scannerDestroy(scanner)
      yara.rulesDestroy(rules)
      koffi.unregister(onMessage)
    },
  }
}

type Pointer = bigint
type Library = ReturnType<typeof koffi.load>
type Yara = ReturnType<typeof bind>

function findLibrary(soname: string): Library | undefined {
  try {
    return koffi.load(soname)
  } catch {
    return undefined
  }
}

/** Binds the functions. Call it once: koffi keeps the names of prototypes for the whole process. */
function bind(library: Library) {
  return {
    CompilerNote: koffi.proto('void (int level, const char *file, int line, void *rule, const char *text, void *data)'),
    ScanMessage: koffi.proto('int (void *context, int kind, void *data, void *user)'),
    initialize: library.func('yr_initialize', 'int', []),
    compilerCreate: library.func('yr_compiler_create', 'int', ['_Out_ void **']),
    compilerDestroy: library.func('yr_compiler_destroy', 'void', ['void *']),
    compilerSetCallback: library.func('yr_compiler_set_callback', 'void', ['void *', 'void *', 'void *']),
    compilerSetIncludeCallback: library.func('yr_compiler_set_include_callback', 'void', [
      'void *',
      'void *',
      'void *',
      'void *',
    ]),
    compilerDefineString: library.func('yr_compiler_define_string_variable', 'int', ['void *', 'str', 'str']),
    compilerAddString: library.func('yr_compiler_add_string', 'int', ['void *', 'void *', 'str']),
    compilerGetRules: library.func('yr_compiler_get_rules', 'int', ['void *', '_Out_ void **']),
    rulesGetStats: library.func('yr_rules_get_stats', 'int', ['void *', 'void *']),
    rulesDestroy: library.func('yr_rules_destroy', 'int', ['void *']),
    scannerCreate: library.func('yr_scanner_create', 'int', ['void *', '_Out_ void **']),
    scannerDestroy: library.func('yr_scanner_destroy', 'void', ['void *']),
    scannerSetCallback: library.func('yr_scanner_set_callback', 'void', ['void *', 'void *', 'void *']),
    scannerSetFlags: library.func('yr_scanner_set_flags', 'void', ['void *', 'int']),
    scannerScanMem: library.func('yr_scanner_scan_mem', 'int', ['void *', 'void *', 'size_t']),
  }
}

function readPointer(fill: (pointer: [Pointer | null]) => void): Pointer {
  const pointer: [Pointer | null] = [null]
  fill(pointer)
  if (pointer[0] === null) throw new Error('libyara gave no pointer')
  return pointer[0]
}

function check(code: number, call: string) {
  if (code !== 0) throw new Error(`${call} returned ${code}`)
}

/** Reads the version from Debian's package list, because the library does not tell it. */
function findBuild(soname: string): { name: string; version: string | undefined } {
  const name = `libyara${soname.split('.').at(-1)}`
  try {
    const entries = readFileSync('/var/lib/dpkg/status', 'utf8').split('\n\n')
    const entry = entries.find((text) => text.startsWith(`Package: ${name}\n`))
    const full = entry?.match(/^Version: (\S+)$/m)?.[1]
    return { name: `${name} ${full ?? ''}`, version: full?.match(/^(?:\d+:)?(\d+(?:\.\d+)+)/)?.[1] }
  } catch {
    return { name, version: undefined }
  }
}
