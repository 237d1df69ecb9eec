import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { listParams, routesOf } from './routes.ts'

type Props = { accountId: string | undefined; onClose: () => void }

const maxHeaders = 20
/** Browsers neither fill in nor keep such a field. */
const secretField = { type: 'password', autoComplete: 'new-password', spellCheck: false } as const
const neverShown = 'Stored encrypted, and never shown again.'

export function AddHost({ accountId, onClose }: Props) {
  const form = useForm(
    routesOf(accountId).add,
    { host: '', headers: [{ name: 'Authorization', value: '' }] },
    { ...listParams(accountId), onDone: onClose },
  )
  const { headers = [] } = form.values
  const change = (at: number, changes: { name?: string; value?: string }) =>
    form.set({ headers: headers.map((header, i) => (i === at ? { ...header, ...changes } : header)) })
  return (
    <FormDialog title="Headers for a host" action="Add" form={form} onClose={onClose}>
      <TextField
        label="Host"
        hint="files.example.com, *.example.com or files.example.com:8443. Only this host gets the headers, over https."
        autoComplete="off"
        spellCheck={false}
        {...form.text('host')}
        onText={(host) => form.set({ host: host.trim() })}
      />
      {headers.map(({ name, value }, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: headers are only added at the end
        <fieldset key={i} className="grid grid-cols-1 gap-3 sm:grid-cols-2">
          <legend className="sr-only">Header {i + 1}</legend>
          <TextField
            label="Header"
            value={name}
            autoComplete="off"
            spellCheck={false}
            onText={(text) => change(i, { name: text })}
          />
          <TextField
            label="Value"
            hint={neverShown}
            value={value}
            {...secretField}
            onText={(text) => change(i, { value: text })}
          />
        </fieldset>
      ))}
      {form.errorOf('headers') !== undefined && <p className="text-threat">{form.errorOf('headers')}</p>}
      {headers.length < maxHeaders && (
        <div>
          <Button isSmall onClick={() => form.set({ headers: [...headers, { name: '', value: '' }] })}>
            Add a header
          </Button>
        </div>
      )}
    </FormDialog>
  )
}

export function AddBucket({ accountId, onClose }: Props) {
  const form = useForm(
    routesOf(accountId).add,
    { bucket: '', region: '', endpoint: '', url_style: null, access_key_id: '', secret_access_key: '' },
    { ...listParams(accountId), onDone: onClose },
  )
  return (
    <FormDialog title="S3 key for a bucket" action="Add" form={form} onClose={onClose}>
      <TextField
        label="Bucket"
        hint="Requests for URLs of objects in this bucket are signed."
        autoComplete="off"
        {...form.text('bucket')}
      />
      <TextField label="Region" hint="Such as eu-central-1." autoComplete="off" {...form.text('region')} />
      <TextField
        label="Endpoint (optional)"
        hint="Address of the S3 service, such as https://s3.example.com. Leave it empty for AWS."
        autoComplete="off"
        {...form.text('endpoint')}
      />
      <SelectField
        label="URLs of the endpoint"
        options={[
          ['', 'ENDPOINT/BUCKET/KEY'],
          ['host', 'BUCKET.ENDPOINT/KEY'],
        ]}
        hint="For AWS, both kinds are signed."
        {...form.text('url_style')}
        onText={(style) => form.set({ url_style: style === 'host' ? style : null })}
      />
      <TextField label="Access key ID" autoComplete="off" {...form.text('access_key_id')} />
      <TextField label="Secret access key" hint={neverShown} {...form.text('secret_access_key')} {...secretField} />
    </FormDialog>
  )
}
