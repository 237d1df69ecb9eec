import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty, Failure, Notice, Reading } from '../../ui/feedback.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { toNumber } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

type Setting = Answer<'getSystem'>['settings'][number]

export function SystemPage() {
  const system = useRead('getSystem')
  return (
    <Page
      title="System"
      about="What runs here, and how it is set. Settings are changed where they come from, and count from the next start."
    >
      <Reading of={system}>
        {({ version, node_version, region, roles, settings }) => (
          <>
            <div className="grid gap-4 lg:grid-cols-2">
              <Card title="Running">
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
      </Reading>
    </Page>
  )
}

function BackupCard() {
  const backup = useChange('makeBackup')
  return (
    <Card title="Backup">
      <div className="flex flex-col items-start gap-3">
        <p className="text-soft">
          Accounts, keys, results and the master key, saved below the data directory while the service runs.
        </p>
        <Button isBusy={backup.isPending} onClick={() => backup.mutate({})}>
          Back up now
        </Button>
        <Failure error={backup.error} />
        {backup.data !== undefined && (
          <Notice>
            <p role="status" className="[overflow-wrap:anywhere]">
              {toNumber(backup.data.rows)} rows and {toNumber(backup.data.files)} files are saved in{' '}
              <code className="font-mono text-xs">{backup.data.directory}</code>. It holds secrets: keep it safe.
            </p>
          </Notice>
        )}
      </div>
    </Card>
  )
}

function Settings({ settings }: { settings: Setting[] }) {
  const [{ find = '', set }, setAddress] = useAddress()
  const wanted = find.trim().toLowerCase()
  const rows = settings.filter(
    ({ name, about, origin }) =>
      `${name} ${about}`.toLowerCase().includes(wanted) && (set === undefined || isSetHere(origin)),
  )
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-end gap-x-6 gap-y-3">
        <div className="w-80 max-w-full">
          <TextField
            label="Find a setting"
            type="search"
            placeholder="Such as webhook"
            value={find}
            onText={(text) => setAddress({ find: text })}
          />
        </div>
        <div className="pb-1.5">
          <CheckField
            label="Only those that were set"
            isOn={set !== undefined}
            onChange={(isOn) => setAddress({ set: isOn ? 'yes' : undefined })}
          />
        </div>
      </div>
      {rows.length === 0 ? (
        <Empty title="No setting is like that" />
      ) : (
        <Table
          caption="Settings"
          rows={rows}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Setting', cell: (setting) => <About setting={setting} /> },
            { title: 'Value', cell: (setting) => <Value setting={setting} /> },
            { title: 'From', cell: ({ name, origin }) => <Origin name={name} origin={origin} /> },
          ]}
        />
      )}
    </div>
  )
}

const isSetHere = (origin: string) => origin !== 'default' && origin !== 'not set'

const About = ({ setting: { name, about } }: { setting: Setting }) => (
  <span className="flex max-w-xl flex-col [overflow-wrap:anywhere]">
    <code className="font-mono text-xs font-medium">{name}</code>
    <span className="text-soft">{about}</span>
  </span>
)

function Value({ setting: { value, secret } }: { setting: Setting }) {
  if (value === null) return <span className="whitespace-nowrap text-faint">not set</span>
  return secret ? <Badge>hidden</Badge> : <Long isCode>{value}</Long>
}

function Origin({ name, origin }: { name: string; origin: string }) {
  if (!isSetHere(origin)) return <span className="text-faint">{origin === 'default' ? 'default' : '–'}</span>
  return <Long>{origin === name ? 'environment' : origin}</Long>
}
