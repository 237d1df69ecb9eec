import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'

type Params = Record<string, string | undefined>
type Props = { params: Params; onChange: (changes: Params) => void }

const filters = ['status', 'kind', 'key', 'name', 'from', 'to', 'hash']

export function HistoryFilters({ params, onChange }: Props) {
  const keys = useRead('listKeys')
  const isFiltered = filters.some((name) => params[name] !== undefined)
  return (
    <search aria-label="Filters" className="flex flex-col gap-3 rounded-xl border border-line bg-panel p-4">
      <div className="grid grid-cols-[repeat(auto-fit,minmax(9.5rem,1fr))] gap-3">
        <SelectField
          label="Verdict"
          value={params.status ?? ''}
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
          value={params.kind ?? ''}
          onText={(kind) => onChange({ kind })}
          options={[
            ['', 'All'],
            ['malware', 'Malware'],
            ['nsfw_image', 'NSFW image'],
          ]}
        />
        <SelectField
          label="Key"
          value={params.key ?? ''}
          onText={(key) => onChange({ key })}
          options={[['', 'All'], ...(keys.data ?? []).map(({ id, name }): [string, string] => [id, name])]}
        />
        <TextField
          label="From"
          type="date"
          value={params.from ?? ''}
          max={params.to}
          onText={(from) => onChange({ from })}
        />
        <TextField label="To" type="date" value={params.to ?? ''} min={params.from} onText={(to) => onChange({ to })} />
      </div>
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-40 flex-1">
          <TextField
            label="File name"
            type="search"
            placeholder="invoice"
            value={params.name ?? ''}
            onText={(name) => onChange({ name })}
          />
        </div>
        <div className="min-w-40 flex-2">
          <HashField key={params.hash} hash={params.hash ?? ''} onHash={(hash) => onChange({ hash })} />
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

/** Applies the filter once the text is a complete hash. */
function HashField({ hash, onHash }: { hash: string; onHash: (hash: string) => void }) {
  const [text, setText] = useState(hash)
  const update = (typed: string) => {
    const normalized = typed.trim().toLowerCase()
    setText(normalized)
    if (normalized === '' || isHash(normalized)) onHash(normalized)
  }
  const isIncomplete = text !== '' && !isHash(text)
  return (
    <TextField
      label="SHA-256"
      placeholder="275a021b…"
      spellCheck={false}
      value={text}
      error={isIncomplete ? `Enter all 64 hexadecimal digits; this text has ${text.length} characters.` : undefined}
      onText={update}
    />
  )
}

const isHash = (text: string) => /^[0-9a-f]{64}$/.test(text)
