import { useState } from 'react'
import { TextField } from './field.tsx'

type Props = {
  label: string
  hint?: string
  error?: string | undefined
  /** NaN while something else than a number stands there: the form then says what is wrong. */
  value: number | null
  onNumber: (value: number | null) => void
}

const read = (text: string) => (text.trim() === '' ? null : Number(text.replaceAll(/[\s,]/g, '')))
const write = (value: number | null) => (value === null || Number.isNaN(value) ? '' : String(value))

/** Keeps what was typed as it was typed, as long as it means the value. */
export function NumberField({ value, onNumber, ...rest }: Props) {
  const [text, setText] = useState(write(value))
  return (
    <TextField
      {...rest}
      inputMode="numeric"
      autoComplete="off"
      value={Object.is(read(text), value) ? text : write(value)}
      onText={(typed) => {
        setText(typed)
        onNumber(read(typed))
      }}
    />
  )
}
