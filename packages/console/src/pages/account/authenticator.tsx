import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button, buttonClass } from '../../ui/button.tsx'
import { CopyButton, Secret } from '../../ui/copy.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { QrCode } from '../../ui/qr-code.tsx'

/** The authenticator app of the person and its recovery codes. */
export function AuthenticatorCard({ hasTotp, codesLeft }: { hasTotp: boolean; codesLeft: number }) {
  const [isStarting, setStarting] = useState(false)
  const [started, setStarted] = useState<TotpSecret>()
  const [isRemoving, setRemoving] = useState(false)
  const [isRenewing, setRenewing] = useState(false)
  const [codes, setCodes] = useState<string[]>()
  return (
    <Card
      title="Authenticator app"
      actions={<Badge tone={hasTotp ? 'clean' : 'plain'}>{hasTotp ? 'on' : 'off'}</Badge>}
    >
      <p className="mb-4 text-soft">
        With an authenticator app, each sign-in needs a six-digit code in addition to the password.
      </p>
      {hasTotp ? (
        <div className="flex flex-col items-start gap-4">
          <p>
            {codesLeft === 1 ? 'One recovery code is' : `${codesLeft} recovery codes are`} left. Each replaces a code of
            the app once.
          </p>
          <span className="flex gap-2">
            <Button onClick={() => setRenewing(true)}>New recovery codes</Button>
            <Button onClick={() => setRemoving(true)}>Remove</Button>
          </span>
        </div>
      ) : (
        <Button onClick={() => setStarting(true)}>Set up</Button>
      )}
      {isStarting && <StartTotp onStarted={setStarted} onClose={() => setStarting(false)} />}
      {started !== undefined && !hasTotp && (
        <ConfirmTotp {...started} onCodes={setCodes} onClose={() => setStarted(undefined)} />
      )}
      {isRemoving && <RemoveTotp onClose={() => setRemoving(false)} />}
      {isRenewing && <RenewCodes onCodes={setCodes} onClose={() => setRenewing(false)} />}
      {codes !== undefined && <RecoveryCodes codes={codes} onClose={() => setCodes(undefined)} />}
    </Card>
  )
}

type CodeProps = { onCodes: (codes: string[]) => void; onClose: () => void }

/** Shows new recovery codes, of which the service keeps only digests: no later request returns them. */
function RecoveryCodes({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  const text = codes.join('\n')
  return (
    <InfoDialog title="Recovery codes" action="I have stored them" onClose={onClose}>
      <p>
        With one of these codes you can sign in without the app. Each works once.{' '}
        <strong>They are shown only now:</strong> store them where you find them without your phone.
      </p>
      <ul
        aria-label="Recovery codes"
        className="grid grid-cols-1 gap-x-6 gap-y-1 rounded-lg border border-line bg-sunk px-4 py-3 font-mono text-xs sm:grid-cols-2"
      >
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div className="flex flex-wrap gap-2">
        <CopyButton text={text} subject="recovery codes" />
        <a
          className={buttonClass('secondary', true)}
          download="assay-recovery-codes.txt"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(`${text}\n`)}`}
        >
          Download
        </a>
      </div>
    </InfoDialog>
  )
}

function RenewCodes({ onCodes, onClose }: CodeProps) {
  const form = useForm(
    'renewRecoveryCodes',
    { password: '' },
    {
      onDone: ({ recovery_codes }) => {
        onClose()
        onCodes(recovery_codes)
      },
    },
  )
  return (
    <FormDialog title="New recovery codes" action="Create" form={form} onClose={onClose}>
      <p className="text-soft">The codes that you have now stop working.</p>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}

type TotpSecret = { secret: string; uri: string }

function StartTotp({ onStarted, onClose }: { onStarted: (secret: TotpSecret) => void; onClose: () => void }) {
  const form = useForm(
    'startTotp',
    { password: '' },
    {
      onDone: (secret) => {
        onClose()
        onStarted(secret)
      },
    },
  )
  return (
    <FormDialog title="Set up your authenticator app" action="Continue" form={form} onClose={onClose}>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}

function ConfirmTotp({ secret, uri, onCodes, onClose }: CodeProps & TotpSecret) {
  const form = useForm(
    'confirmTotp',
    { code: '' },
    {
      onDone: ({ recovery_codes }) => {
        onClose()
        onCodes(recovery_codes)
      },
    },
  )
  return (
    <FormDialog title="Set up your authenticator app" action="Turn on" form={form} onClose={onClose}>
      <p>Scan this code with your authenticator app:</p>
      <QrCode text={uri} label="QR code for your authenticator app. The same key follows as text." />
      <Secret label="If you cannot scan it, enter this key in the app:" text={secret} />
      <p>
        On a phone,{' '}
        <a href={uri} className="font-medium text-brand underline">
          open it in your app
        </a>
        .
      </p>
      <TextField
        label="Code that the app shows"
        inputMode="numeric"
        autoComplete="one-time-code"
        {...form.text('code')}
      />
    </FormDialog>
  )
}

function RemoveTotp({ onClose }: { onClose: () => void }) {
  const form = useForm('removeTotp', { password: '' }, { onDone: onClose })
  return (
    <FormDialog title="Remove the authenticator app" action="Remove" isDangerous form={form} onClose={onClose}>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}
