import { useState } from 'react'
import { TextField } from './field.tsx'

type Props = {
  label: string
  hint?: string
  error?: string | undefined
  /** NaN while the text is not a number, which the check of the form reports. */
  value: number | null
  onNumber: (value: number | null) => void
}

const parse = (text: string) => (text.trim() === '' ? null : Number(text.replaceAll(/[\s,]/g, '')))
const format = (value: number | null) => (value === null || Number.isNaN(value) ? '' : String(value))

/** A field for numbers that keeps the text as it was typed while it stands for the value. */
export function NumberField({ value, onNumber, ...rest }: Props) {
  const [text, setText] = useState(format(value))
  return (
    <TextField
      {...rest}
      inputMode="numeric"
      autoComplete="off"
      value={Object.is(parse(text), value) ? text : format(value)}
      onText={(typed) => {
        setText(typed)
        onNumber(parse(typed))
      }}
    />
  )
}
