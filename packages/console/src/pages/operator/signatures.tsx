import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiError, putFile } from '../../api/call.ts'
import { refresh, useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Failure, Notice, Reading } from '../../ui/feedback.tsx'
import { toAge, toBytes, toDay } from '../../ui/format.ts'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

const toName = (path: string) => path.split('/').at(-1) ?? path

/** What malware is recognised by, and whether it still is. */
export function SignaturesPage() {
  const signatures = useRead('getSignatures', {}, { liveMs: 10_000 })
  const update = useChange('updateSignatures')
  const test = useChange('runSelfTest')
  const remove = useChange('removeSignatures')
  const actions = (
    <>
      <Button isBusy={test.isPending} onClick={() => test.mutate({})}>
        Test the engines
      </Button>
      <Button isBusy={update.isPending} onClick={() => update.mutate({})}>
        Look for updates
      </Button>
    </>
  )
  return (
    <Page
      title="Signatures and models"
      about="New files are tried before they are used, and a running scan is not disturbed."
      actions={actions}
    >
      <Failure error={update.error ?? test.error ?? remove.error} />
      {update.data !== undefined && (
        <Notice>
          <span role="status">
            {update.data.state}: {update.data.detail}
          </span>
        </Notice>
      )}
      {test.data !== undefined && (
        <Card
          title="Self-test"
          actions={<Badge tone={test.data.ok ? 'clean' : 'threat'}>{test.data.ok ? 'passed' : 'failed'}</Badge>}
        >
          <Facts rows={test.data.checks.map(({ name, ok, detail }) => [`${ok ? '✓' : '✗'} ${name}`, detail])} />
        </Card>
      )}
      <Upload />
      <Reading of={signatures}>
        {({ files, released_at, refused, models }) => (
          <>
            {refused.length > 0 && (
              <Card title="Left out">
                <Facts rows={refused.map(({ path, reason }) => [toName(path), reason])} />
              </Card>
            )}
            <Table
              caption="Signature files"
              rows={files}
              keyOf={({ path }) => path}
              columns={[
                {
                  title: 'File',
                  cell: ({ path }) => <code className="font-mono text-xs break-all">{toName(path)}</code>,
                },
                {
                  title: 'From',
                  cell: ({ is_own }) => <Badge tone={is_own ? 'brand' : 'plain'}>{is_own ? 'yours' : 'shipped'}</Badge>,
                },
                { title: 'Size', isNumber: true, cell: ({ bytes }) => toBytes(bytes) },
                { title: 'Changed', isExtra: true, cell: ({ changed_at }) => toAge(changed_at) },
                {
                  title: 'Actions',
                  cell: ({ path, is_own }) =>
                    is_own && (
                      <Button
                        look="quiet"
                        aria-label={`Remove ${toName(path)}`}
                        onClick={() => remove.mutate({ params: { name: toName(path) } })}
                      >
                        Remove
                      </Button>
                    ),
                },
              ]}
            />
            <Card title="In use">
              <Facts
                rows={[
                  ['Newest signatures of', released_at === null ? '–' : toDay(released_at)],
                  ['Models for images', models.length === 0 ? 'none' : models.map(({ name }) => name).join(', ')],
                ]}
              />
            </Card>
          </>
        )}
      </Reading>
    </Page>
  )
}

/** ClamAV's databases for a machine without the internet, or rules of one's own. */
function Upload() {
  const client = useQueryClient()
  const input = useRef<HTMLInputElement>(null)
  const [state, setState] = useState<{ isBusy: boolean; said?: string; error?: ApiError }>({ isBusy: false })
  const send = async (file: File) => {
    setState({ isBusy: true })
    try {
      await putFile('uploadSignatures', { name: file.name }, file)
      setState({ isBusy: false, said: `${file.name} is in use within seconds.` })
      await refresh(client)
    } catch (error) {
      setState({ isBusy: false, error: error instanceof ApiError ? error : new ApiError(String(error), { status: 0 }) })
    }
  }
  return (
    <Card title="Add a file">
      <p className="mb-3 text-soft">
        Your own signatures (.ndb, .ldb, .hdb, .hsb), YARA rules (.yar), or databases of ClamAV (.cvd, .cld) brought
        from a machine with the internet.
      </p>
      <input
        ref={input}
        type="file"
        className="sr-only"
        aria-label="Signature file"
        tabIndex={-1}
        onChange={(event) => {
          const [file] = event.target.files ?? []
          if (file !== undefined) void send(file)
          event.target.value = ''
        }}
      />
      <Button isBusy={state.isBusy} onClick={() => input.current?.click()}>
        Choose a file
      </Button>
      {state.said !== undefined && (
        <p role="status" className="mt-3">
          {state.said}
        </p>
      )}
      <div className="mt-3">
        <Failure error={state.error} />
      </div>
    </Card>
  )
}
