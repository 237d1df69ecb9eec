import type { KeyRestrictions, KeyRow } from '@assay/contract/admin'
import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'

const actions = { read: 'Fetch results', scan: 'Scan and wait', submit: 'Submit background scans' } as const
const kinds = { malware: 'Malware', nsfw_image: 'NSFW images' } as const

/** Describes what a key is restricted to, in the words of the form; undefined for a key without restrictions. */
export function describeRestrictions({ allow, kinds: only, networks }: KeyRestrictions): string | undefined {
  const parts = [
    ...(allow === null ? [] : [allow.map((action) => actions[action]).join(', ')]),
    ...(only === null ? [] : [only.map((kind) => kinds[kind]).join(', ')]),
    ...(networks === null ? [] : [networks.join(', ')]),
  ]
  return parts.length === 0 ? undefined : parts.join(' · ')
}

export function RestrictKey({ apiKey, onClose }: { apiKey: KeyRow; onClose: () => void }) {
  const { allow, kinds, networks } = apiKey
  const form = useForm('restrictKey', { allow, kinds, networks }, { params: { id: apiKey.id }, onDone: onClose })
  return (
    <FormDialog title={`Restrict ${apiKey.name}`} action="Save" form={form} onClose={onClose}>
      <p className="text-soft">The change takes effect with the next request.</p>
      <RestrictionFields values={form.values} onChange={form.set} errorOf={form.errorOf} />
    </FormDialog>
  )
}

type FieldsProps = {
  values: KeyRestrictions
  onChange: (changes: Partial<KeyRestrictions>) => void
  errorOf: (field: string) => string | undefined
}

/** Fields for the restrictions of a key. Everything checked, and no network, means no restriction. */
export function RestrictionFields({ values, onChange, errorOf }: FieldsProps) {
  const [text, setText] = useState(values.networks?.join(', ') ?? '')
  return (
    <>
      <Checks
        legend="May"
        names={actions}
        chosen={values.allow}
        error={errorOf('allow')}
        onChange={(allow) => onChange({ allow })}
      />
      <Checks
        legend="Kinds of scans"
        names={kinds}
        chosen={values.kinds}
        error={errorOf('kinds')}
        onChange={(chosen) => onChange({ kinds: chosen })}
      />
      <TextField
        label="Networks"
        placeholder="Any"
        hint="Where the key may be used, such as 10.0.0.0/8, 2001:db8::/32"
        autoComplete="off"
        value={text}
        error={errorOf('networks')}
        onText={(typed) => {
          setText(typed)
          const networks = typed.split(/[\s,]+/).filter((part) => part !== '')
          onChange({ networks: networks.length === 0 ? null : networks })
        }}
      />
    </>
  )
}

type ChecksProps<N extends string> = {
  legend: string
  names: Readonly<Record<N, string>>
  /** Null if all are chosen. */
  chosen: N[] | null
  error: string | undefined
  onChange: (chosen: N[] | null) => void
}

function Checks<N extends string>({ legend, names, chosen, error, onChange }: ChecksProps<N>) {
  const all = Object.keys(names) as N[]
  const isOn = (name: N) => chosen === null || chosen.includes(name)
  const toggle = (name: N) => {
    const next = all.filter((other) => isOn(other) !== (other === name))
    onChange(next.length === all.length ? null : next)
  }
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 font-medium">{legend}</legend>
      {all.map((name) => (
        <CheckField key={name} label={names[name]} isOn={isOn(name)} onChange={() => toggle(name)} />
      ))}
      {error !== undefined && <p className="text-threat">{error}</p>}
    </fieldset>
  )
}
