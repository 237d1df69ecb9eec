import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { toNumber } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Empty, ErrorMessage, Loaded, Notice } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'

type Setting = Answer<'getSystem'>['settings'][number]

export function SystemPage() {
  const system = useRead('getSystem')
  return (
    <Page
      title="System"
      about="Version and settings of this node. Change a setting at its source; it applies after a restart."
    >
      <Loaded query={system}>
        {({ version, node_version, region, roles, settings }) => (
          <>
            <div className="grid gap-4 lg:grid-cols-2">
              <Card title="Version">
                <Facts
                  rows={[
                    ['Assay', version],
                    ['Node.js', node_version],
                    ['Region', region],
                    ['Roles', roles],
                  ]}
                />
              </Card>
              <BackupCard />
            </div>
            <Settings settings={settings} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function BackupCard() {
  const backup = useChange('makeBackup')
  return (
    <Card title="Backup">
      <div className="flex flex-col items-start gap-3">
        <p className="text-soft">
          Saves accounts, keys and results below the data directory, while the service runs. To restore the backup, you
          need the master key, which is not part of it.
        </p>
        <Button isBusy={backup.isPending} onClick={() => backup.mutate({})}>
          Back up now
        </Button>
        <ErrorMessage error={backup.error} />
        {backup.data !== undefined && (
          <Notice>
            <p role="status" className="[overflow-wrap:anywhere]">
              Saved {toNumber(backup.data.rows)} rows and {toNumber(backup.data.files)} files in{' '}
              <code className="font-mono text-xs">{backup.data.directory}</code>. Keep the master key somewhere else.
            </p>
          </Notice>
        )}
      </div>
    </Card>
  )
}

function Settings({ settings }: { settings: Setting[] }) {
  const [{ search = '', set }, setParams] = useSearchParams()
  const searchText = search.trim().toLowerCase()
  const rows = settings.filter(
    ({ name, about, origin }) =>
      `${name} ${about}`.toLowerCase().includes(searchText) && (set === undefined || isChanged(origin)),
  )
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-end gap-x-6 gap-y-3">
        <div className="w-80 max-w-full">
          <TextField
            label="Search settings"
            type="search"
            placeholder="For example webhook"
            value={search}
            onText={(text) => setParams({ search: text })}
          />
        </div>
        <div className="pb-1.5">
          <CheckField
            label="Changed settings only"
            isOn={set !== undefined}
            onChange={(isOn) => setParams({ set: isOn ? 'yes' : undefined })}
          />
        </div>
      </div>
      {rows.length === 0 ? (
        <Empty title="No matching settings" />
      ) : (
        <Table
          caption="Settings"
          rows={rows}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Setting', cell: (setting) => <SettingName setting={setting} /> },
            { title: 'Value', cell: (setting) => <Value setting={setting} /> },
            { title: 'Source', cell: ({ name, origin }) => <Origin name={name} origin={origin} /> },
          ]}
        />
      )}
    </div>
  )
}

const isChanged = (origin: string) => origin !== 'default' && origin !== 'not set'

const SettingName = ({ setting: { name, about } }: { setting: Setting }) => (
  <span className="flex max-w-xl flex-col [overflow-wrap:anywhere]">
    <code className="font-mono text-xs font-medium">{name}</code>
    <span className="text-soft">{about}</span>
  </span>
)

function Value({ setting: { value, secret } }: { setting: Setting }) {
  if (value === null) return <span className="whitespace-nowrap text-faint">not set</span>
  return secret ? <Badge>hidden</Badge> : <LongText isCode>{value}</LongText>
}

function Origin({ name, origin }: { name: string; origin: string }) {
  if (!isChanged(origin)) return <span className="text-faint">{origin === 'default' ? 'default' : '–'}</span>
  return origin === name ? <span className="whitespace-nowrap">environment</span> : <LongText>{origin}</LongText>
}
