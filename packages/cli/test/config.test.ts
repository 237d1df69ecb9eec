import assert from 'node:assert/strict'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { findUnusedUrl, openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, runCli } from './run-cli.ts'

const service = getSharedService()

describe('the configuration', async () => {
  const { api_key: apiKey } = await service.createAccount('--credits', '1')

  test('is stored by login, used by other commands and removed by logout', async (t) => {
    const cwd = openDir(t)
    const env = newEnv(cwd, { XDG_CONFIG_HOME: join(cwd, 'xdg') })
    const path = join(cwd, 'xdg/assay/config.json')
    writeFileSync(join(cwd, 'key'), `${apiKey}\n`)
    const login = await runCli(['login', '--url', service.url, '--key-file', 'key'], { cwd, env })
    assert.deepEqual([login.code, login.err], [0, ''])
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(statSync(join(cwd, 'xdg/assay')).mode & 0o777, 0o700)
    const me = await runCli(['me'], { cwd, env })
    assert.equal(me.code, 0)
    assert.match(
      me.out,
      /^Service +http:\/\/127\.0\.0\.1:\d+\nPlan +standard\nCredits +1 of 1\nPeriod +\d{4}-.* to \d{4}-.*\n$/,
    )
    assert.equal(JSON.parse((await runCli(['me', '--json'], { cwd, env })).out).credit_limit, 1)
    // This scan spends the last credit; login accepts the key nevertheless.
    assert.equal((await runCli(['key'], { cwd, env })).code, 0)
    assert.equal(
      (await runCli(['me'], { cwd, env })).err,
      'assay-scan: No credits are left. Wait for the next period, or ask the operator for more.\n',
    )
    const again = await runCli(['login', '--url', service.url], { cwd, env, input: apiKey })
    assert.equal(again.code, 0)
    const logout = await runCli(['logout'], { cwd, env })
    assert.match(logout.out, /^Removed .*\/xdg\/assay\/config\.json\. The API key stays valid/)
    assert(!existsSync(path))
    assert.equal((await runCli(['logout'], { cwd, env })).out, 'No API key is stored.\n')
    assert.match(
      (await runCli(['me'], { cwd, env })).err,
      /^assay-scan: No service is configured\. Run assay-scan login, or set ASSAY_URL and ASSAY_API_KEY\.\n$/,
    )
  })

  test('is not stored if the service cannot be reached or rejects the key', async (t) => {
    const cwd = openDir(t)
    const env = newEnv(cwd)
    const failLogin = async (args: string[], input: string) => {
      const { code, out, err } = await runCli(['login', ...args], { cwd, env, input })
      assert.deepEqual([code, out], [2, ''])
      assert(!existsSync(join(cwd, '.config')))
      return err
    }
    assert.match(await failLogin(['--url', service.url], 'assay_wrong'), /does not accept this API key/)
    assert.match(await failLogin(['--url', await findUnusedUrl()], apiKey), /Cannot reach/)
    assert.match(await failLogin(['--url', service.url], '\n'), /The API key is empty\. Nothing was stored\./)
    assert.match(
      await failLogin(['--url', 'scan.example.com'], apiKey),
      /scan\.example\.com is not a valid address\. Enter an address that begins with https:\/\//,
    )
    assert.match(await failLogin([], apiKey), /Standard input is not a terminal\. Use --url and --key-file\./)
    assert.match(await failLogin(['--url', service.url, '--key-file', 'missing'], ''), /Cannot read missing/)
    assert.match(await failLogin(['assay_key'], ''), /other users could see a key on the command line/)
  })

  test('a stored key is sent only to the address that it was stored with', async (t) => {
    const cwd = openDir(t)
    mkdirSync(join(cwd, '.config/assay'), { recursive: true })
    writeFileSync(
      join(cwd, '.config/assay/config.json'),
      JSON.stringify({ url: 'https://scan.example.com', api_key: 'stored' }),
    )
    const fake = await openFakeServer(t, () => ({ json: {} }))
    const { code, err } = await runCli(['me'], { cwd, env: newEnv(cwd, { ASSAY_URL: fake.url }) })
    assert.equal(code, 2)
    assert.match(
      err,
      /^assay-scan: The stored API key is for https:\/\/scan\.example\.com, not for http:.*\. Set ASSAY_API_KEY as well\.\n$/,
    )
    assert.equal(fake.requests.length, 0)
    writeFileSync(join(cwd, '.config/assay/config.json'), '{"url": 1')
    const invalid = await runCli(['me'], { cwd, env: newEnv(cwd) })
    assert.match(
      invalid.err,
      /config\.json is not a valid configuration file\. Run assay-scan login to replace it\.\n$/,
    )
    const half = await runCli(['me'], { cwd, env: newEnv(cwd, { ASSAY_URL: 'gopher://x', ASSAY_API_KEY: 'a b' }) })
    assert.match(half.err, /^assay-scan: The API key must be an API key|ASSAY_URL must be/)
  })
})
