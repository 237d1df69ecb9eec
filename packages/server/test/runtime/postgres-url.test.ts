import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parsePostgresUrl } from '../../src/runtime/postgres-url.ts'

describe('a PostgreSQL URL', () => {
  const listHosts = (url: string) => parsePostgresUrl(url).hosts.map(({ host, port }) => `${host} ${port}`)

  test('names one host or several, with ports, as libpq reads them', () => {
    assert.deepEqual(listHosts('postgres://u:p@db1:5433,db2,[::1]:5434/assay'), ['db1 5433', 'db2 5432', '::1 5434'])
    assert.deepEqual(listHosts('postgresql:///assay?host=/run/postgresql'), ['/run/postgresql 5432'])
    assert.deepEqual(listHosts('postgres://%2Frun%2Fpg/assay'), ['/run/pg 5432'])
    assert.deepEqual(listHosts('postgres:///assay?host=a,::1&port=1,2'), ['a 1', '::1 2'])
    assert.deepEqual(listHosts('postgres:///assay?host=a,b&port=7'), ['a 7', 'b 7'])
    assert.deepEqual(listHosts('postgres://u@/assay'), ['localhost 5432'])
  })

  test('has a user, a password and a database, decoded', () => {
    const { user, password, database, options } = parsePostgresUrl(
      'postgres://ada:p%40ss%20word@db/assay?options=-c%20search_path%3Dscans',
    )
    assert.deepEqual([user, password, database, options], ['ada', 'p@ss word', 'assay', '-c search_path=scans'])
  })

  test('has the modes of TLS that libpq has', () => {
    const readVerify = (query: string) => parsePostgresUrl(`postgres://db/assay?${query}`).tls?.verify
    assert.equal(readVerify(''), undefined)
    assert.equal(readVerify('sslmode=disable'), undefined)
    assert.equal(readVerify('sslmode=require'), 'none')
    assert.equal(readVerify('ssl=true'), 'none')
    assert.equal(readVerify('ssl=false'), undefined)
    assert.equal(readVerify('sslmode=require&sslrootcert=/ca.pem'), 'ca')
    assert.equal(readVerify('sslmode=verify-ca&sslrootcert=/ca.pem'), 'ca')
    assert.equal(readVerify('sslmode=verify-full'), 'full')
    assert.equal(readVerify('sslmode=verify-full&sslrootcert=system'), 'full')
  })

  const mistakes: [string, RegExp][] = [
    ['http://db/assay', /must be a URL such as/],
    ['postgres://db/assay?channel_binding=require', /no parameters other than/],
    ['postgres://db/assay?sslmode=prefer', /sslmode=disable or/],
    ['postgres://db/assay?sslmode=require&sslmode=disable', /only once/],
    ['postgres://db/assay?sslrootcert=/ca.pem', /must have sslmode/],
    ['postgres://db/assay?ssl=1', /ssl=true or ssl=false/],
    ['postgres://db/assay?ssl=TRUE', /ssl=true or ssl=false/],
    ['postgres://db/assay?ssl=true&sslmode=disable', /either ssl=true or sslmode=disable/],
    ['postgres://db/assay?sslmode=', /a value for the parameter sslmode/],
    ['postgres://db/assay?ssl', /a value for the parameter ssl,/],
    ['postgres://db/assay?sslmode=verify-ca', /sslrootcert/],
    ['postgres://db/assay?sslmode=require&sslcert=/c.pem', /both sslcert and sslkey/],
    ['postgres://db/assay?target_session_attrs=any', /read-write/],
    ['postgres://db:0/assay', /ports from 1/],
    ['postgres://a,b,c/assay?port=1,2', /one port for all hosts/],
    ['postgres://u:%zz@db/assay', /%25/],
  ]
  for (const [url, sentence] of mistakes) {
    test(`${url} is refused`, () => assert.throws(() => parsePostgresUrl(url), sentence))
  }
})
