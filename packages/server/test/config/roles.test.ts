import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ConfigMistakes, loadConfig } from '../../src/config/load-config.ts'

const shared = {
  ASSAY_DATABASE_URL: 'postgres://assay@db/assay',
  ASSAY_BLOBS: 's3://bucket?endpoint=http://s3.example.com&region=eu',
  ASSAY_MASTER_KEY: 'ab'.repeat(32),
}

function load(env: NodeJS.ProcessEnv) {
  try {
    return loadConfig(env, '/nowhere/assay.toml').config.roles
  } catch (error) {
    if (error instanceof ConfigMistakes) return error.mistakes
    throw error
  }
}

describe('a node', () => {
  test('does both by default, and then needs nothing that others have', () => {
    assert.deepEqual(load({}), { api: true, worker: true })
    assert.deepEqual(load({ ASSAY_ROLES: 'worker, api' }), { api: true, worker: true })
  })

  for (const role of ['api', 'worker']) {
    test(`that is ${role} alone needs everything that nodes share`, () => {
      assert.deepEqual(load({ ...shared, ASSAY_ROLES: role }), { api: role === 'api', worker: role === 'worker' })
      const needs = `ASSAY_ROLES=${role} needs`
      assert.deepEqual(load({ ASSAY_ROLES: role }), [
        `${needs} a database that all nodes share: set ASSAY_DATABASE_URL to a PostgreSQL of yours.`,
        `${needs} a place for content that all nodes share: set ASSAY_BLOBS to s3://bucket?endpoint=...&region=....`,
        `${needs} the key that all nodes share: set ASSAY_MASTER_KEY to the same 64 hex digits everywhere.`,
      ])
      for (const missing of Object.keys(shared)) {
        const [mistake = '', ...others] = load({ ...shared, [missing]: '', ASSAY_ROLES: role }) as string[]
        assert.match(mistake, new RegExp(`: set ${missing} to `))
        assert.deepEqual(others, [])
      }
    })
  }

  for (const roles of ['scanner', 'api;worker', 'api,', ',']) {
    test(`cannot be ${JSON.stringify(roles)}`, () => {
      assert.match((load({ ASSAY_ROLES: roles }) as string[])[0] ?? '', /^ASSAY_ROLES must be api, worker or both/)
    })
  }
})
