import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

export const repository = fileURLToPath(new URL('../../../../', import.meta.url))

export const readText = (path: string): string => readFileSync(`${repository}${path}`, 'utf8')

/** Every document of a YAML file, with its anchors merged; throws on what is not YAML, duplicate keys included. */
export function readYaml<T>(path: string): T[] {
  return parseAllDocuments(readText(path), { merge: true }).map((document) => {
    for (const fault of [...document.errors, ...document.warnings]) throw new Error(`${path}: ${fault.message}`)
    return document.toJS() as T
  })
}

export const manifestDir = 'packaging/kubernetes'
export const composeFiles = ['compose.yaml', 'compose.cluster.yaml']

export const listManifests = (): string[] =>
  readdirSync(`${repository}${manifestDir}`)
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => `${manifestDir}/${name}`)

export type Service = {
  image: string
  build?: string
  environment?: Record<string, string>
  secrets?: string[]
  volumes?: string[]
  tmpfs?: string[]
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
  shm_size?: string
  mem_limit?: string
  memswap_limit?: string
  stop_grace_period?: string
}

export type Compose = {
  services: Record<string, Service>
  secrets: Record<string, { file: string }>
  volumes: Record<string, unknown>
  configs?: Record<string, { file: string }>
}

export const readCompose = (path: string): Compose => readYaml<Compose>(path)[0] as Compose
