import type { KeyRow } from '@assay/contract/admin'
import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { Page } from '../../ui/page.tsx'
import { SearchField, useSearchMatch } from '../../ui/search.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age, Day } from '../../ui/time.tsx'
import { CreateKey, RevokeKey, RotateKey } from './key-dialogs.tsx'
import { describeRestrictions, RestrictKey } from './key-restrictions.tsx'

type KeyAction = 'rotate' | 'restrict' | 'revoke'
type OpenDialog = { action: 'create' } | { action: KeyAction; key: KeyRow }

export function KeysPage() {
  const keys = useRead('listKeys', {}, { liveMs: 5000 })
  const [open, setOpen] = useState<OpenDialog>()
  const close = () => setOpen(undefined)
  const matches = useSearchMatch()
  const createButton = (
    <Button variant="primary" onClick={() => setOpen({ action: 'create' })}>
      Create a key
    </Button>
  )
  return (
    <Page
      title="API keys"
      about="Applications send an API key in the header X-API-Key. A key is shown once, when it is created."
      actions={
        <>
          <ExportLinks list="listKeys" />
          {createButton}
        </>
      }
    >
      <Loaded query={keys}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No API keys">Create a key so that your applications can scan.</Empty>
          ) : (
            <>
              <SearchField placeholder="Name, beginning of the key, or creator" />
              <KeyTable
                keys={rows
                  .filter(({ name, prefix, created_by }) => matches(name, prefix, created_by))
                  .sort(compareKeys)}
                onOpen={(action, key) => setOpen({ action, key })}
              />
            </>
          )
        }
      </Loaded>
      {open?.action === 'create' && <CreateKey onClose={close} />}
      {open?.action === 'rotate' && <RotateKey apiKey={open.key} onClose={close} />}
      {open?.action === 'restrict' && <RestrictKey apiKey={open.key} onClose={close} />}
      {open?.action === 'revoke' && <RevokeKey apiKey={open.key} onClose={close} />}
    </Page>
  )
}

function KeyTable({ keys, onOpen }: { keys: KeyRow[]; onOpen: (action: KeyAction, key: KeyRow) => void }) {
  return (
    <Table
      caption="API keys"
      rows={keys}
      keyOf={({ id }) => id}
      columns={[
        {
          title: 'Name',
          cell: (key) => (
            <span className="flex flex-col items-start">
              <span className="max-w-52 truncate font-medium">{key.name}</span>
              <code className="font-mono text-xs text-soft">{key.prefix}…</code>
              <span className="max-w-72 text-xs text-soft">{describeRestrictions(key)}</span>
            </span>
          ),
        },
        {
          title: 'State',
          cell: (key) => (
            <span className="flex flex-wrap gap-1.5">
              <Badge tone={stateTones[toState(key)]}>{toState(key)}</Badge>
              {key.is_test && <Badge tone="error">test</Badge>}
            </span>
          ),
        },
        {
          title: 'Last used',
          cell: ({ last_used_at }) => <Age at={last_used_at} otherwise="Never" />,
          isExtra: true,
        },
        {
          title: 'Expires',
          cell: ({ expires_at, revoked_at }) =>
            revoked_at === null ? (
              <Expiry at={expires_at} />
            ) : (
              <>
                Revoked <Age at={revoked_at} />
              </>
            ),
          isExtra: true,
        },
        {
          title: 'Created',
          cell: ({ created_at, created_by, creator_left }) => (
            <span className="flex flex-col items-start">
              <Day at={created_at} />
              {created_by !== null && <span className="max-w-52 truncate text-xs text-soft">by {created_by}</span>}
              {creator_left && <Badge tone="error">no longer a member</Badge>}
            </span>
          ),
          isExtra: true,
        },
        {
          title: 'Actions',
          isActions: true,
          cell: (key) =>
            key.revoked_at === null && (
              <span className="flex gap-2">
                {toState(key) === 'active' && (
                  <Button onClick={() => onOpen('rotate', key)} aria-label={`Rotate ${key.name}`} isSmall>
                    Rotate
                  </Button>
                )}
                <Button onClick={() => onOpen('restrict', key)} aria-label={`Restrict ${key.name}`} isSmall>
                  Restrict
                </Button>
                <Button onClick={() => onOpen('revoke', key)} aria-label={`Revoke ${key.name}`} isSmall>
                  Revoke
                </Button>
              </span>
            ),
        },
      ]}
    />
  )
}

const stateTones = { active: 'clean', expired: 'plain', revoked: 'plain' } as const

function toState({ expires_at, revoked_at }: KeyRow): keyof typeof stateTones {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && Date.parse(expires_at) <= Date.now() ? 'expired' : 'active'
}

const weekMs = 7 * 86_400_000
/** Shows a time within a week as a countdown, because the key must be replaced soon. */
function Expiry({ at }: { at: string | null }) {
  const isSoon = at !== null && Date.parse(at) - Date.now() < weekMs
  return isSoon ? <Age at={at} /> : <Day at={at} otherwise="Never" />
}

/** Sorts active keys first, and newer keys before older ones. */
function compareKeys(a: KeyRow, b: KeyRow): number {
  const rank = (key: KeyRow) => (toState(key) === 'active' ? 0 : 1)
  return rank(a) - rank(b) || b.created_at.localeCompare(a.created_at)
}
