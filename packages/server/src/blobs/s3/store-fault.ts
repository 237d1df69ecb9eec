/** Why the store cannot be used, for the operator: says what to do. Undefined when it is just away. */
export function findStoreMistake(error: unknown, place: { bucket: string; region: string }): string | undefined {
  const { name, message, $metadata } = ((error as Error).cause ?? error) as StoreError
  const status = $metadata?.httpStatusCode
  if (name === 'CredentialsProviderError') {
    return 'No credentials for the content store were found. Set ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY.'
  }
  if (status === undefined || status >= 500 || status === 429 || status < 300) return undefined
  if (name === 'NoSuchBucket' || status === 404) {
    return `The content store has no bucket ${place.bucket}. Make it, or correct ASSAY_BLOBS.`
  }
  if (name === 'AuthorizationHeaderMalformed' || name === 'PermanentRedirect' || status === 301) {
    return `The content store does not accept the region ${place.region} for the bucket ${place.bucket}: ${message}. Correct it in ASSAY_BLOBS.`
  }
  if (name === 'AccessDenied') {
    return `The content store does not let these credentials use the bucket ${place.bucket}. Give them the rights that docs/operating.md lists.`
  }
  if (status === 403 || status === 401) {
    return `The content store refuses the credentials (${name}). Check ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY.`
  }
  return `The content store refuses what ASSAY_BLOBS names: ${name}, ${message}.`
}

type StoreError = Error & { $metadata?: { httpStatusCode?: number } }
