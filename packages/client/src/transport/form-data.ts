import type { Form } from './transport.ts'

/** Builds the form for transports that let the platform encode it. */
export async function toFormData({ fields, content }: Form): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', await content.toBlob(), content.name ?? '')
  return form
}
