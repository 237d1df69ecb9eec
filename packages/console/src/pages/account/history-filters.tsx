import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'

type Address = Record<string, string | undefined>
type Props = { address: Address; onChange: (more: Address) => void }

const filters = ['status', 'kind', 'key', 'from', 'to', 'hash']

export function HistoryFilters({ address, onChange }: Props) {
  const keys = useRead('listKeys')
  const isFiltered = filters.some((name) => address[name] !== undefined)
  return (
    <search aria-label="Filters" className="flex flex-col gap-3 rounded-xl border border-line bg-panel p-4">
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-5">
        <SelectField
          label="Verdict"
          value={address.status ?? ''}
          onText={(status) => onChange({ status })}
          options={[
            ['', 'All'],
            ['clean', 'Clean'],
            ['threat', 'Threat'],
            ['error', 'Error'],
            ['pending', 'Pending'],
          ]}
        />
        <SelectField
          label="Kind"
          value={address.kind ?? ''}
          onText={(kind) => onChange({ kind })}
          options={[
            ['', 'All'],
            ['malware', 'Malware'],
            ['nsfw_image', 'NSFW image'],
          ]}
        />
        <SelectField
          label="Key"
          value={address.key ?? ''}
          onText={(key) => onChange({ key })}
          options={[['', 'All'], ...(keys.data ?? []).map(({ id, name }): [string, string] => [id, name])]}
        />
        <TextField
          label="From"
          type="date"
          value={address.from ?? ''}
          max={address.to}
          onText={(from) => onChange({ from })}
        />
        <TextField
          label="To"
          type="date"
          value={address.to ?? ''}
          min={address.from}
          onText={(to) => onChange({ to })}
        />
      </div>
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-0 flex-1">
          <HashField key={address.hash} hash={address.hash ?? ''} onHash={(hash) => onChange({ hash })} />
        </div>
        {isFiltered && (
          <Button onClick={() => onChange(Object.fromEntries(filters.map((name) => [name, undefined])))}>
            Clear filters
          </Button>
        )}
      </div>
    </search>
  )
}

/** Only a whole hash is looked for. */
function HashField({ hash, onHash }: { hash: string; onHash: (hash: string) => void }) {
  const [text, setText] = useState(hash)
  const take = (typed: string) => {
    const clean = typed.trim().toLowerCase()
    setText(clean)
    if (clean === '' || /^[0-9a-f]{64}$/.test(clean)) onHash(clean)
  }
  const isPart = text !== '' && !/^[0-9a-f]{64}$/.test(text)
  return (
    <TextField
      label="SHA-256"
      placeholder="275a021b…"
      spellCheck={false}
      value={text}
      error={isPart ? `All 64 characters are needed, from 0 to 9 and a to f; this has ${text.length}.` : undefined}
      onText={take}
    />
  )
}
