import type { AlertChannel, AlertTopic, ChannelKind } from '@assay/contract/admin'
import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Secret } from '../../ui/copy.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { NumberField } from '../../ui/number-field.tsx'
import { kindNames, routes, type Scope, topicNames, topics } from './scope.ts'

const defaultThreats = 10

const hints: Record<ChannelKind, Record<Scope, string>> = {
  email: { operator: 'Any address.', account: 'The address of a member of this account.' },
  webhook: {
    operator: 'Receives JSON, signed with a secret that you see once.',
    account: 'Receives JSON, signed with the webhook secret of this account.',
  },
  slack: {
    operator: 'The URL of an incoming webhook of Slack.',
    account: 'The URL of an incoming webhook of Slack.',
  },
  teams: {
    operator: 'The URL of a workflow that posts to a channel when a webhook request is received.',
    account: 'The URL of a workflow that posts to a channel when a webhook request is received.',
  },
}

export function AddChannel({ scope, hasEmail, onClose }: { scope: Scope; hasEmail: boolean; onClose: () => void }) {
  const [secret, setSecret] = useState<string>()
  const form = useForm(
    routes[scope].add,
    { kind: hasEmail ? 'email' : 'webhook', target: '', topics: [...topics[scope]], threats_per_hour: defaultThreats },
    {
      onDone: (added) => {
        if (added.secret === null) onClose()
        else setSecret(added.secret)
      },
    },
  )
  const { kind } = form.values
  if (secret !== undefined) {
    return (
      <InfoDialog title="The channel is added" action="I have copied it" onClose={onClose}>
        <Secret label="This secret signs the webhooks of this channel. It is shown only now." text={secret} />
      </InfoDialog>
    )
  }
  const kinds = (Object.keys(kindNames) as ChannelKind[]).filter((name) => hasEmail || name !== 'email')
  return (
    <FormDialog title="Add a channel" action="Add" form={form} onClose={onClose}>
      <SelectField
        label="Send by"
        value={kind}
        options={kinds.map((name): [string, string] => [name, kindNames[name]])}
        onText={(name) => form.set({ kind: name as ChannelKind })}
        {...(hasEmail ? {} : { hint: 'For email, the operator sets ASSAY_SMTP_URL.' })}
      />
      <TextField
        label={kind === 'email' ? 'Email address' : 'URL'}
        hint={hints[kind][scope]}
        type={kind === 'email' ? 'email' : 'url'}
        autoComplete="off"
        spellCheck={false}
        {...form.text('target')}
        onText={(target) => form.set({ target: target.trim() })}
      />
      <Choices scope={scope} form={form} />
    </FormDialog>
  )
}

export function EditChannel({ scope, channel, onClose }: { scope: Scope; channel: AlertChannel; onClose: () => void }) {
  const form = useForm(
    routes[scope].update,
    { topics: channel.topics, threats_per_hour: channel.threats_per_hour },
    { params: { id: channel.id }, onDone: onClose },
  )
  return (
    <FormDialog title={`${kindNames[channel.kind]}: ${channel.target}`} action="Save" form={form} onClose={onClose}>
      <Choices scope={scope} form={form} />
    </FormDialog>
  )
}

type ChoiceForm = {
  values: { topics: AlertTopic[]; threats_per_hour?: number }
  set(changes: { topics?: AlertTopic[]; threats_per_hour?: number }): void
  errorOf(field: string): string | undefined
}

function Choices({ scope, form }: { scope: Scope; form: ChoiceForm }) {
  const { topics: chosen, threats_per_hour } = form.values
  const error = form.errorOf('topics')
  return (
    <>
      <fieldset className="flex flex-col gap-2">
        <legend className="mb-1 font-medium">Tell when</legend>
        {topics[scope].map((topic) => (
          <CheckField
            key={topic}
            label={topicNames[topic]}
            isOn={chosen.includes(topic)}
            onChange={(isOn) =>
              form.set({ topics: isOn ? [...chosen, topic] : chosen.filter((other) => other !== topic) })
            }
          />
        ))}
        {error !== undefined && <p className="text-threat">{chosen.length === 0 ? 'Choose at least one.' : error}</p>}
      </fieldset>
      {chosen.includes('threats') && (
        <NumberField
          label="Threats within an hour"
          hint="The alert begins at this number, and ends at half of it."
          error={form.errorOf('threats_per_hour')}
          value={threats_per_hour ?? null}
          onNumber={(threats) => form.set({ threats_per_hour: threats ?? Number.NaN })}
        />
      )}
    </>
  )
}
