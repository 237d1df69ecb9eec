import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from 'react'

type Common = { label: string; hint?: ReactNode; error?: string | undefined }

const control =
  'min-h-9.5 w-full min-w-0 rounded-lg border border-line bg-panel px-3 py-1.5 text-ink shadow-xs placeholder:text-faint aria-invalid:border-threat'

/** A label, a control, and below it an error or a hint, which screen readers announce with the control. */
function Frame({
  label,
  hint,
  error,
  children,
}: Common & { children: (ids: { id: string; describedBy: string | undefined }) => ReactNode }) {
  const id = useId()
  const isDescribed = error !== undefined || hint !== undefined
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {children({ id, describedBy: isDescribed ? `${id}-about` : undefined })}
      {isDescribed && (
        <p id={`${id}-about`} className={error === undefined ? 'text-faint' : 'text-threat'}>
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

export function TextField({
  label,
  hint,
  error,
  onText,
  ...rest
}: Common & Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> & { onText: (text: string) => void }) {
  return (
    <Frame label={label} hint={hint} error={error}>
      {({ id, describedBy }) => (
        <input
          {...rest}
          id={id}
          aria-describedby={describedBy}
          aria-invalid={error !== undefined}
          className={control}
          onChange={(event) => onText(event.target.value)}
        />
      )}
    </Frame>
  )
}

export function SelectField({
  label,
  hint,
  error,
  options,
  onText,
  ...rest
}: Common &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange'> & {
    options: [value: string, label: string][]
    onText: (text: string) => void
  }) {
  return (
    <Frame label={label} hint={hint} error={error}>
      {({ id, describedBy }) => (
        <select
          {...rest}
          id={id}
          aria-describedby={describedBy}
          className={control}
          onChange={(event) => onText(event.target.value)}
        >
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Frame>
  )
}

export function CheckField({
  label,
  isOn,
  onChange,
}: {
  label: string
  isOn: boolean
  onChange: (isOn: boolean) => void
}) {
  return (
    <label className="flex items-center gap-2">
      <input
        type="checkbox"
        checked={isOn}
        onChange={(event) => onChange(event.target.checked)}
        className="size-4 accent-brand"
      />
      {label}
    </label>
  )
}

type EndDateProps = Common & { value: string | null | undefined; min?: string; onTime: (time: string | null) => void }

/** The last day on which something is valid, as the time of its last second; an empty field is null. */
export function EndDateField({ value, onTime, ...rest }: EndDateProps) {
  return (
    <TextField
      {...rest}
      type="date"
      value={value?.slice(0, 10) ?? ''}
      onText={(day) => onTime(day === '' ? null : `${day}T23:59:59Z`)}
    />
  )
}
