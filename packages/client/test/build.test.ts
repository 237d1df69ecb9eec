import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { alreadyTested } from '../../../acceptance/support/scanning.ts'
import { buildClient } from './build-client.ts'

const maxGzipBytes = 12 * 1024

test('the built package is small and complete, and its browser entries do not use Node', {
  skip: alreadyTested,
}, async (t) => {
  // The build uses the libraries of ES2022 and the types of Node 18, so it fails if the code uses anything newer.
  const dir = buildClient()
  const manifest = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>
    sideEffects: boolean
    dependencies?: object
    private?: boolean
  }

  await t.test('every entry is compiled and has its types, and the package has no dependencies', () => {
    assert.equal(manifest.dependencies, undefined)
    assert.equal(manifest.sideEffects, false)
    assert.equal(manifest.private, undefined)
    const files = listPaths(manifest.exports)
    assert(files.length > 10)
    for (const path of files) assert(readFileSync(join(dir, path), 'utf8').length > 0, path)
    const names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
    for (const needed of ['README.md', 'LICENSE', 'webhook-vectors.json']) assert(names.includes(needed), needed)
    for (const name of names.filter((name) => /\.(js|d\.ts)$/.test(name))) {
      assert.doesNotMatch(readFileSync(join(dir, name), 'utf8'), /from '[^']*(?<!\.d)\.ts'|@assay\/contract/, name)
    }
  })

  const bundle = async (source: string) => {
    const { outputFiles } = await build({
      stdin: { contents: source, resolveDir: dir },
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      logLevel: 'silent',
    })
    return outputFiles[0]?.text ?? ''
  }

  await t.test('the whole bundle is under 12 KB, and a single import is smaller', async () => {
    const all = gzipSync(await bundle(`export * from './index.js'`)).length
    const verifyOnly = gzipSync(await bundle(`export { verifyWebhook } from './index.js'`)).length
    t.diagnostic(`gzip: all ${all} bytes, verifyWebhook ${verifyOnly}`)
    assert(all < maxGzipBytes, `${all} bytes`)
    assert(verifyOnly < all / 2, `verifyWebhook alone takes ${verifyOnly} of ${all} bytes`)
  })

  await t.test('the entries for browsers and Workers import nothing from Node', async () => {
    for (const entry of ['./index.js', './receivers/workers.js', './receivers/next.js']) {
      assert.doesNotMatch(await bundle(`export * from '${entry}'`), /node:|\bprocess\b|\bBuffer\b/)
    }
    await assert.rejects(bundle(`export * from './node.js'`), /Could not resolve "node:/)
  })
})

const listPaths = (tree: unknown): string[] =>
  typeof tree === 'string' ? [tree] : Object.values(tree as object).flatMap(listPaths)
