import { TextField } from '../../ui/field.tsx'

/** The field for the second factor, which a form shows after the password was right. */
export const CodeField = (props: Omit<Parameters<typeof TextField>[0], 'label'>) => (
  <TextField
    label="Code from your authenticator app, or a recovery code"
    autoComplete="one-time-code"
    autoFocus
    {...props}
  />
)
