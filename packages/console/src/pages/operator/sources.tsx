import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { LongText } from '../../ui/long-text.tsx'
import { Card, Facts } from '../../ui/page.tsx'
import { ErrorMessage, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Source = Answer<'listSources'>[number]

/** Sources of signatures with their age, and what is held back of them. Shows nothing without sources. */
export function Sources() {
  const sources = useRead('listSources', {}, { liveMs: 10_000 })
  const update = useChange('updateSource')
  return (
    <Loaded query={sources}>
      {(rows) =>
        rows.length > 0 && (
          <>
            <ErrorMessage error={update.error} />
            <Table
              title="Sources"
              caption="Sources of signatures"
              rows={rows}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Source', cell: ({ name }) => name },
                { title: 'Licence', cell: ({ licence }) => <LongText>{licence ?? '–'}</LongText> },
                { title: 'Signatures', isNumber: true, cell: ({ signatures }) => signatures ?? '–' },
                { title: 'Held back', isNumber: true, cell: ({ held }) => held.length },
                { title: 'Checked', cell: ({ checked_at }) => <Age at={checked_at} otherwise="never" /> },
                { title: 'Changed', cell: ({ changed_at }) => <Age at={changed_at} otherwise="never" /> },
                { title: 'State', cell: (source) => <State source={source} /> },
                {
                  title: 'Actions',
                  isActions: true,
                  cell: ({ name }) => (
                    <Button
                      isSmall
                      aria-label={`Update ${name}`}
                      isBusy={update.isPending && update.variables?.params?.name === name}
                      onClick={() => update.mutate({ params: { name } })}
                    >
                      Update
                    </Button>
                  ),
                },
              ]}
            />
            <Unused rows={rows} />
          </>
        )
      }
    </Loaded>
  )
}

function State({ source: { error, attempted_at } }: { source: Source }) {
  if (error !== null) {
    return (
      <>
        <Badge tone="error">! failed</Badge> <LongText>{error}</LongText>
      </>
    )
  }
  return attempted_at === null ? <Badge tone="pending">… waiting</Badge> : <Badge tone="clean">✓ ok</Badge>
}

/** Signatures that match known-good files, and files that cannot be used. */
function Unused({ rows }: { rows: Source[] }) {
  const facts = rows.flatMap(({ name: source, held, refused }): [string, string][] => [
    ...held.map(({ name, file }): [string, string] => [`${source}: ${name}`, `matches the known-good file ${file}`]),
    ...refused.map(({ file, reason }): [string, string] => [`${source}: ${file}`, reason]),
  ])
  if (facts.length === 0) return null
  return (
    <Card title="Held back from sources">
      <Facts rows={facts} />
    </Card>
  )
}
