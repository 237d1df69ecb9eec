import assert from 'node:assert/strict'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { findUnusedUrl, openFakeServer } from '../../client/test/fake-server.ts'
import { newEnv, openDir, runCli } from './run-cli.ts'

const service = getSharedService()

describe('address and key', async () => {
  const { api_key: apiKey } = await service.createAccount('--credits', '1')

  test('are stored by login, used by the others, and removed by logout', async (t) => {
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
    // Its last credit is spent, and login knows the key all the same.
    assert.equal((await runCli(['key'], { cwd, env })).code, 0)
    assert.equal(
      (await runCli(['me'], { cwd, env })).err,
      'assay-scan: No credits are left. Wait for the next period, or ask the operator for more.\n',
    )
    const again = await runCli(['login', '--url', service.url], { cwd, env, input: apiKey })
    assert.equal(again.code, 0)
    const logout = await runCli(['logout'], { cwd, env })
    assert.match(logout.out, /^Removed .*\/xdg\/assay\/config\.json\. The key itself stays valid/)
    assert(!existsSync(path))
    assert.equal((await runCli(['logout'], { cwd, env })).out, 'Nothing is stored.\n')
    assert.match(
      (await runCli(['me'], { cwd, env })).err,
      /^assay-scan: Which service\? Run assay-scan login, or set ASSAY_URL and ASSAY_API_KEY\.\n$/,
    )
  })

  test('are not stored when the service is not there, or does not know the key', async (t) => {
    const cwd = openDir(t)
    const env = newEnv(cwd)
    const said = async (args: string[], input: string) => {
      const { code, out, err } = await runCli(['login', ...args], { cwd, env, input })
      assert.deepEqual([code, out], [2, ''])
      assert(!existsSync(join(cwd, '.config')))
      return err
    }
    assert.match(await said(['--url', service.url], 'assay_wrong'), /does not accept this API key/)
    assert.match(await said(['--url', await findUnusedUrl()], apiKey), /Cannot reach/)
    assert.match(await said(['--url', service.url], '\n'), /The key is empty\. Nothing was stored\./)
    assert.match(
      await said(['--url', 'scan.example.com'], apiKey),
      /scan\.example\.com is no address\. It begins with https:\/\//,
    )
    assert.match(await said([], apiKey), /There is no terminal to ask on\. Give --url and --key-file\./)
    assert.match(await said(['--url', service.url, '--key-file', 'missing'], ''), /missing cannot be read/)
    assert.match(await said(['assay_key'], ''), /a key on the command line could be seen by others/)
  })

  test('a stored key is sent to the address that it was stored with, and to no other', async (t) => {
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
      /^assay-scan: The stored key is for https:\/\/scan\.example\.com, not for http:.*\. Set ASSAY_API_KEY as well\.\n$/,
    )
    assert.equal(fake.requests.length, 0)
    writeFileSync(join(cwd, '.config/assay/config.json'), '{"url": 1')
    const broken = await runCli(['me'], { cwd, env: newEnv(cwd) })
    assert.match(broken.err, /config\.json cannot be understood\. Run assay-scan login to write it anew\.\n$/)
    const half = await runCli(['me'], { cwd, env: newEnv(cwd, { ASSAY_URL: 'gopher://x', ASSAY_API_KEY: 'a b' }) })
    assert.match(half.err, /^assay-scan: The API key must be an API key|ASSAY_URL must be/)
  })
})
