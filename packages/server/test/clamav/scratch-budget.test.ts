import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeScratchBudget, ScratchFull } from '../../src/engines/clamav/clamav-engine.ts'
import { newContent, newZip } from '../engines/unpack-archives.ts'

const noAbort = new AbortController()
const zip = newContent(Buffer.concat([newZip([{}]), Buffer.alloc(2 ** 20)]))

test('a scan that finds no room is repeated with all of it, after the others', async () => {
  const budget = makeScratchBudget({ megabytes: 300 })
  const other = Promise.withResolvers<string>()
  let tries = 0
  const first = budget.use(zip, () => other.promise, noAbort)
  const second = budget.use(
    zip,
    async () => {
      if (++tries === 1) throw new ScratchFull('full')
      return 'second'
    },
    noAbort,
  )
  await new Promise(setImmediate)
  assert.equal(tries, 1)
  other.resolve('first')
  assert.deepEqual(await Promise.all([first, second]), ['first', 'second'])
})

test('content that does not fit at all is refused after it was alone', async () => {
  const budget = makeScratchBudget({ megabytes: 300 })
  let tries = 0
  const full = async () => {
    tries++
    throw new ScratchFull('full')
  }
  await assert.rejects(budget.use(zip, full, noAbort), ScratchFull)
  assert.equal(tries, 2)
})

test('small content does not wait for containers', async () => {
  const budget = makeScratchBudget({ megabytes: 100 })
  const gate = Promise.withResolvers<string>()
  const large = budget.use(zip, () => gate.promise, noAbort)
  assert.equal(await budget.use(newContent(Buffer.from('text')), async () => 'small', noAbort), 'small')
  gate.resolve('large')
  assert.equal(await large, 'large')
})
