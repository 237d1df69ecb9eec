import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Failure, Notice, Reading } from '../../ui/feedback.tsx'
import { toNumber } from '../../ui/format.ts'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

export function SystemPage() {
  const system = useRead('getSystem')
  const backup = useChange('makeBackup')
  const actions = (
    <Button isBusy={backup.isPending} onClick={() => backup.mutate({})}>
      Back up now
    </Button>
  )
  return (
    <Page
      title="System"
      about="What runs here, and how it is set. Settings are changed where they come from, and count from the next start."
      actions={actions}
    >
      <Failure error={backup.error} />
      {backup.data !== undefined && (
        <Notice>
          <span role="status" className="break-all">
            {toNumber(backup.data.rows)} rows and {toNumber(backup.data.files)} files are saved in{' '}
            {backup.data.directory}. It holds secrets: keep it safe.
          </span>
        </Notice>
      )}
      <Reading of={system}>
        {({ version, node_version, region, roles, settings }) => (
          <>
            <Card title="Running">
              <Facts
                rows={[
                  ['Assay', version],
                  ['Node', node_version],
                  ['Region', region],
                  ['Roles', roles],
                ]}
              />
            </Card>
            <Table
              caption="Settings"
              rows={settings}
              keyOf={({ name }) => name}
              columns={[
                {
                  title: 'Setting',
                  cell: ({ name, about }) => (
                    <span className="flex flex-col">
                      <code className="font-mono text-xs">{name}</code>
                      <span className="text-faint">{about}</span>
                    </span>
                  ),
                },
                {
                  title: 'Value',
                  cell: ({ value, secret }) =>
                    value === null ? (
                      <span className="text-faint">not set</span>
                    ) : secret ? (
                      <Badge>hidden</Badge>
                    ) : (
                      <span className="break-all">{value}</span>
                    ),
                },
                { title: 'From', cell: ({ origin }) => <span className="break-all text-soft">{origin}</span> },
              ]}
            />
          </>
        )}
      </Reading>
    </Page>
  )
}
