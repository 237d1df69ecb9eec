import { type AdminRouteName, adminRoutes, type Route } from '@assay/contract/admin'
import { checkForm } from '@assay/contract/check-form'
import { type FormEvent, useState } from 'react'
import type { Input } from './call.ts'
import { type OnDone, useChange } from './hooks.ts'

type Body<N extends AdminRouteName> = NonNullable<Input<N>['body']>

/** State of a form for a route. The form is checked with the schema of the contract, and again by the service. */
export function useForm<N extends AdminRouteName>(
  name: N,
  initial: Body<N>,
  options: { params?: Record<string, string>; onDone?: OnDone<N> } = {},
) {
  const [values, setValues] = useState<Body<N>>(initial)
  const [checked, setChecked] = useState<Record<string, string[]>>({})
  const change = useChange(name, options.onDone === undefined ? {} : { onDone: options.onDone })
  const errors = { ...checked, ...change.error?.fields }
  const hasFieldErrors = Object.keys(change.error?.fields ?? {}).length > 0
  const set = (changes: Partial<Body<N>>) => setValues((before) => ({ ...before, ...changes }))
  const errorOf = (field: string): string | undefined => errors[field]?.join(' ')

  return {
    values,
    set,
    reset: () => {
      setValues(initial)
      setChecked({})
      change.reset()
    },
    errorOf,
    /** Props of a text field for this field of the form. */
    text: (field: keyof Body<N> & string) => ({
      value: String(values[field] ?? ''),
      error: errorOf(field),
      onText: (text: string) => set({ [field]: text } as Partial<Body<N>>),
    }),
    /** Props of an EndDateField for this field of the form. */
    endDate: (field: keyof Body<N> & string) => ({
      value: values[field] as string | null | undefined,
      error: errorOf(field),
      onTime: (time: string | null) => set({ [field]: time } as Partial<Body<N>>),
    }),
    /** An error that does not belong to a field. */
    error: hasFieldErrors ? undefined : (change.error ?? undefined),
    isBusy: change.isPending,
    submit(event?: FormEvent) {
      event?.preventDefault()
      const form = event?.currentTarget
      const { body: schema } = adminRoutes[name] as Route
      const formErrors = schema === undefined ? {} : checkForm(schema, values)
      setChecked(formErrors)
      if (Object.keys(formErrors).length > 0) return focusInvalidField(form)
      const { params } = options
      const input = { body: values, ...(params === undefined ? {} : { params }) } as Input<N>
      change.mutate(input, { onError: () => focusInvalidField(form) })
    },
  }
}

/** Moves the focus to the first invalid field after it is rendered, so that screen readers announce the error. */
function focusInvalidField(form: Element | undefined) {
  requestAnimationFrame(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
}
