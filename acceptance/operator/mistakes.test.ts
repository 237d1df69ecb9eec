import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runAlone, runProgram } from '../support/run-program.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const nobody = '00000000-0000-4000-8000-000000000000'
const run = (...args: string[]) => runProgram(service.settings, ...args)

describe('wrong usage ends with code 2 and a line that says what is expected', () => {
  const cases: [args: string[], says: RegExp][] = [
    [['nonsense'], /unknown command 'nonsense'/],
    [['accounts', 'nonsense'], /unknown command 'nonsense'/],
    [['acounts', 'list'], /Did you mean accounts\?/],
    [['accounts', 'create'], /required option '--name <name>'/],
    [['accounts', 'create', '--name', ' '], /Enter a name of 1 to 200 characters\./],
    [['accounts', 'create', '--name', 'x', '--credits', '-1'], /Enter a whole number from 0 to 2000000000\./],
    [['accounts', 'create', '--name', 'x', '--rate', '5'], /Enter a rate such as 50\/1m/],
    [['accounts', 'create', '--name', 'x', '--expires', 'soon'], /Enter a date such as 2027-01-31/],
    [['accounts', 'create', '--name', 'x', '--expires', '2027-02-31'], /Enter a date such as/],
    [['accounts', 'create', '--name', 'x', '--colour', 'red'], /unknown option '--colour'/],
    [['accounts', 'show'], /missing required argument 'id'/],
    [['accounts', 'show', 'x'], /Enter an ID such as/],
    [['accounts', 'show', nobody, nobody], /too many arguments/],
    [['keys', 'revoke', 'assay_not_an_id'], /Enter an ID such as/],
    [['plans', 'save', 'x', '--credits', '1'], /required option '--rate/],
    [['credits', 'ledger', '--account', nobody, '--limit', '0'], /Enter a whole number from 1/],
  ]
  for (const [args, says] of cases) {
    test(args.join(' '), async () => {
      const { code, out, err } = await run(...args)
      assert.equal(code, 2)
      assert.equal(out, '')
      assert.match(err, says)
      assertPlain(err)
    })
  }

  test('a command without its subcommand shows the help', async () => {
    for (const args of [[], ['accounts']]) {
      const { code, err } = await run(...args)
      assert.equal(code, 2)
      assert.match(err, /^Usage: assay/)
    }
  })
})

describe('a command that fails ends with code 1 and one sentence, in JSON with --json', () => {
  const cases: [args: string[], says: RegExp][] = [
    [
      ['accounts', 'create', '--name', 'x', '--plan', 'none'],
      /^There is no plan none\. The plans are: .*standard.*\.$/,
    ],
    [['accounts', 'show', nobody], /^There is no account 0.*\.$/],
    [['accounts', 'update', nobody, '--name', 'x'], /^There is no account 0.*\.$/],
    [['accounts', 'suspend', nobody], /^There is no account 0.*\.$/],
    [['keys', 'create', '--account', nobody], /^There is no account 0.*\.$/],
    [['keys', 'revoke', nobody], /^There is no key 0.*\.$/],
    [['plans', 'delete', 'nonsense'], /^There is no plan nonsense\.$/],
    [['credits', 'grant', '--account', nobody, '--amount', '1'], /^There is no account 0.*\.$/],
    [['credits', 'ledger', '--account', nobody], /^There is no account 0.*\.$/],
    [['webhooks', 'rotate-secret', '--account', nobody], /^There is no account 0.*\.$/],
  ]
  for (const [args, says] of cases) {
    test(args.join(' '), async () => {
      const { code, out, err } = await run(...args, '--json')
      assert.equal(code, 1)
      assert.match(JSON.parse(out).error, says)
      assert.match(err.trimEnd(), says)
      assertPlain(err)
    })
  }
})

test('a process of its own exits with the same codes', async () => {
  const cases: [args: string[], code: number, out: RegExp, err: RegExp][] = [
    [['nonsense'], 2, /^$/, /unknown command 'nonsense'/],
    [['accounts', 'show', nobody, '--json'], 1, /^\{"error":"There is no account 0.*\}\n$/, /^There is no account 0/],
    [['plans', 'list', '--json'], 0, /"name":"standard"/, /^$/],
  ]
  for (const [args, expected, out, err] of cases) {
    const run = await runAlone(service.settings, ...args)
    assert.equal(run.code, expected, args.join(' '))
    assert.match(run.out, out)
    assert.match(run.err, err)
  }
})

test('a database that cannot be reached ends with code 1, without a stack or a password', async () => {
  const settings = { ASSAY_DATABASE_URL: 'postgres://someone:hush-password@127.0.0.1:1/assay' }
  const { code, out, err } = await runProgram(settings, 'accounts', 'list', '--json')
  assert.equal(code, 1)
  assert.match(JSON.parse(out).error, /\S/)
  assert(!`${out}${err}`.includes('hush-password'))
  assertPlain(err)
})

function assertPlain(text: string) {
  assert.doesNotMatch(text, /^\s+at /m, 'no stack')
  assert.doesNotMatch(text, /node_modules|\.ts:\d/)
}
