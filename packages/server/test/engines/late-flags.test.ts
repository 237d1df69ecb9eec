import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { compileLibrary } from '../../src/engines/child-process/late-flags.ts'

declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (program: object) => { exports: { valid(): number } }
}

/** A module of two functions that return a number; the body of `invalid` leaves none. */
function toModule(value: number): Buffer {
  const head = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  const types = [1, 5, 1, 0x60, 0, 1, 0x7f]
  const functions = [3, 3, 2, 0, 0]
  const names = [7, 19, 2, 5, ...Buffer.from('valid'), 0, 0, 7, ...Buffer.from('invalid'), 0, 1]
  const code = [10, 9, 2, 4, 0, 0x41, value, 0x0b, 2, 0, 0x0b]
  return Buffer.from([head, types, functions, names, code].flat())
}

test('the functions of a library are not validated when it is compiled', () => {
  const { exports } = new WebAssembly.Instance(compileLibrary(toModule(7)))
  assert.equal(exports.valid(), 7)
})

test('an invalid function of a library is not run', () => {
  const { href } = new URL('../../src/engines/child-process/late-flags.ts', import.meta.url)
  const program = `
    const { compileLibrary } = await import('${href}')
    const { exports } = new WebAssembly.Instance(compileLibrary(Buffer.from('${toModule(7).toString('hex')}', 'hex')))
    process.stdout.write(String(exports.valid()))
    exports.invalid()
    process.stdout.write(' ran')`
  const args = ['--no-warnings', '--input-type=module', '--eval', program]
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(stdout, '7')
  assert.notEqual(status, 0)
})

test('other modules are validated as a whole, also after a library was compiled', () => {
  compileLibrary(toModule(7))
  // V8 would find a module of the same bytes in its cache.
  assert.throws(() => new WebAssembly.Module(toModule(8)), /function #1/)
})
