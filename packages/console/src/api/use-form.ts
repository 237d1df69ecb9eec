import { type AdminRouteName, adminRoutes, checkForm, type Route } from '@assay/contract/admin'
import { type FormEvent, useState } from 'react'
import type { Answer, Input } from './call.ts'
import { useChange } from './hooks.ts'

type Body<N extends AdminRouteName> = NonNullable<Input<N>['body']>

/** A form for a route: checked here with the schema of the contract, and again by the service, whose words are shown. */
export function useForm<N extends AdminRouteName>(
  name: N,
  initial: Body<N>,
  options: { params?: Record<string, string>; onDone?: (answer: Answer<N>) => void } = {},
) {
  const [values, setValues] = useState<Body<N>>(initial)
  const [checked, setChecked] = useState<Record<string, string[]>>({})
  const change = useChange(name, options.onDone === undefined ? {} : { onDone: options.onDone })
  const errors = { ...checked, ...change.error?.fields }
  const isField = Object.keys(change.error?.fields ?? {}).length > 0

  return {
    values,
    set: (more: Partial<Body<N>>) => setValues((before) => ({ ...before, ...more })),
    reset: () => {
      setValues(initial)
      setChecked({})
      change.reset()
    },
    /** For the field of that name. */
    errorOf: (field: string): string | undefined => errors[field]?.join(' '),
    /** What belongs to no field. */
    error: isField ? undefined : (change.error ?? undefined),
    isBusy: change.isPending,
    submit(event?: FormEvent) {
      event?.preventDefault()
      const form = event?.currentTarget
      const { body: schema } = adminRoutes[name] as Route
      const found = schema === undefined ? {} : checkForm(schema, values)
      setChecked(found)
      if (Object.keys(found).length > 0) return focusMistake(form)
      const { params } = options
      const input = { body: values, ...(params === undefined ? {} : { params }) } as Input<N>
      change.mutate(input, { onError: () => focusMistake(form) })
    },
  }
}

/** Once it is drawn: whoever only hears the page is told what is wrong by going there. */
function focusMistake(form: Element | undefined) {
  requestAnimationFrame(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
}
