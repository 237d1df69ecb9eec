import { findRow, type Queryable } from './query.ts'

/** Something that the server of PostgreSQL lacks. Without what is `required`, Assay does not start. */
export type ServerLack = { what: string; has: string; needs: string; because: string; required: boolean }

/** Needs of this process, to which the description of the server is compared. */
type Wanted = {
  /** Connections that this process opens at most. */
  connections: number
  /** Servers in the URL: more than one means that another may take over. */
  hosts: number
  /** Whether connections share server processes, so that Assay sets nothing on them. */
  isShared: boolean
}

type Described = {
  version: number
  versionName: string
  encoding: string
  role: string
  database: string
  schema: string | null
  creates: boolean
  tableOwner: string | null
  freeConnections: number
  fsync: string
  fullPageWrites: string
  synchronousCommit: string
  standbyNames: string
  isolation: string
  statementTimeout: string
}

const oldestMajor = 15

const describe = `
select current_setting('server_version_num')::int as version, current_setting('server_version') as "versionName",
  current_setting('server_encoding') as encoding, quote_ident(current_user) as role,
  quote_ident(current_database()) as database, current_schema() as schema,
  coalesce(has_schema_privilege(current_schema(), 'create'), false) as creates,
  (select pg_get_userbyid(relowner)::text from pg_class
   where oid = to_regclass('migrations') and not pg_has_role(relowner, 'usage')) as "tableOwner",
  least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0)
      - (select sum(numbackends) from pg_stat_database)::int,
    (select case when rolconnlimit >= 0 then
       rolconnlimit - (select count(*) from pg_stat_activity where usename = current_user)::int end
     from pg_roles where rolname = current_user),
    (select case when datconnlimit >= 0 then datconnlimit - numbackends end
     from pg_database d join pg_stat_database s on s.datid = d.oid where d.datname = current_database())
  ) as "freeConnections",
  current_setting('fsync') as fsync, current_setting('full_page_writes') as "fullPageWrites",
  current_setting('synchronous_commit') as "synchronousCommit",
  current_setting('synchronous_standby_names') as "standbyNames",
  current_setting('default_transaction_isolation') as isolation,
  current_setting('statement_timeout') as "statementTimeout"`

/** Asks the server for all that Assay needs of it, in one statement, and lists what is missing. */
export async function listServerLacks(db: Queryable, wanted: Wanted): Promise<ServerLack[]> {
  const described = await findRow<Described>(db, describe)
  return described === undefined ? [] : judgeServer(described, wanted)
}

export function judgeServer(server: Described, { connections, hosts, isShared }: Wanted): ServerLack[] {
  const lacks: (ServerLack & { isLacking: boolean })[] = [
    {
      what: 'version',
      has: server.versionName,
      needs: `${oldestMajor} or newer`,
      because: 'statements of Assay need it',
      required: true,
      isLacking: server.version < oldestMajor * 10_000,
    },
    {
      what: 'encoding of the database',
      has: server.encoding,
      needs: 'UTF8',
      because: 'file names of all languages are stored; create the database with: encoding UTF8 template template0',
      required: true,
      isLacking: server.encoding !== 'UTF8',
    },
    {
      what: 'privilege to create tables',
      has: server.schema === null ? 'no schema in search_path' : `none in the schema ${server.schema}`,
      needs: `grant create on schema ${server.schema ?? 'public'} to ${server.role}`,
      because: 'the service creates its tables, and a partition for each day',
      required: true,
      isLacking: !server.creates,
    },
    {
      what: 'ownership of the tables',
      has: `they belong to ${server.tableOwner}`,
      needs: `reassign owned by ${server.tableOwner} to ${server.role}`,
      because: 'the service migrates its tables, and drops old partitions',
      required: true,
      isLacking: server.tableOwner !== null,
    },
    {
      what: 'free connections',
      has: String(Math.max(0, server.freeConnections)),
      needs: `${connections}, the connections of this node`,
      because: 'requests get 503 when none is left; raise max_connections or lower ASSAY_DATABASE_CONNECTIONS',
      required: false,
      isLacking: server.freeConnections < connections,
    },
    {
      what: 'fsync',
      has: server.fsync,
      needs: 'on',
      because: 'a power cut can destroy the database',
      required: false,
      isLacking: server.fsync !== 'on',
    },
    {
      what: 'full_page_writes',
      has: server.fullPageWrites,
      needs: 'on',
      because: 'a power cut can destroy the database, unless the file system writes whole pages',
      required: false,
      isLacking: server.fullPageWrites !== 'on',
    },
    {
      what: 'synchronous_commit',
      has: server.synchronousCommit,
      needs: 'on',
      because: 'jobs and charges that were acknowledged are lost in a crash or a failover',
      required: false,
      isLacking: server.synchronousCommit === 'off' || (hosts > 1 && server.synchronousCommit === 'local'),
    },
    {
      what: 'synchronous_standby_names',
      has: 'empty',
      needs: 'a standby (Patroni: synchronous_mode)',
      because: 'a failover loses what was acknowledged and not yet replicated',
      required: false,
      isLacking: hosts > 1 && server.standbyNames === '',
    },
    {
      what: 'default_transaction_isolation',
      has: server.isolation,
      needs: 'read committed',
      because: 'statements of several nodes fail instead of waiting for each other',
      required: false,
      isLacking: server.isolation !== 'read committed',
    },
    {
      what: 'statement_timeout',
      has: '0',
      needs: `alter role ${server.role} in database ${server.database} set statement_timeout = '60s'`,
      because: 'Assay cannot set it through a pooler in transaction mode, and a statement may hang',
      required: false,
      isLacking: isShared && server.statementTimeout === '0',
    },
  ]
  return lacks.filter(({ isLacking }) => isLacking).map(({ isLacking: _, ...lack }) => lack)
}

/** A table with one row for each lack. */
export function toLackTable(lacks: ServerLack[]): string {
  const rows = lacks.map(({ what, has, needs, because }) => [what, has, needs, because])
  const cells = [['PostgreSQL', 'Has', 'Needs', 'Because'], ...rows]
  const widths = [0, 1, 2].map((i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)))
  return cells.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')).join('\n')
}
