import { useId } from 'react'

export type Option<V extends string> = { value: V; label: string; about?: string }

/** Radio buttons with descriptions. */
export function Choice<V extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: V
  options: Option<V>[]
  onChange: (value: V) => void
}) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1 font-medium">{label}</legend>
      <div className="grid gap-2 sm:grid-cols-2">
        {options.map((option) => (
          <label
            key={option.value}
            className="flex cursor-pointer gap-2.5 rounded-lg border border-line px-3 py-2 hover:bg-sunk has-checked:border-brand has-checked:bg-brand-soft"
          >
            <input
              type="radio"
              name={name}
              checked={value === option.value}
              onChange={() => onChange(option.value)}
              className="mt-1 size-4 shrink-0 accent-brand"
            />
            <span className="min-w-0">
              <span className="block font-medium">{option.label}</span>
              {option.about !== undefined && <span className="block text-xs text-soft">{option.about}</span>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
