import type { SourceSettings } from '../ports/source-store.ts'

type Preset = Pick<SourceSettings, 'name' | 'url' | 'everyHours' | 'maxMegabytes'> & {
  publisher: string
  licence: string
  sha256?: string
}

/** Free sources that are well known. None is used unless the operator adds it. */
export const presets: Preset[] = [
  {
    name: 'urlhaus',
    url: 'https://urlhaus.abuse.ch/downloads/urlhaus.ndb',
    sha256: 'https://urlhaus.abuse.ch/downloads/urlhaus.ndb.sha256',
    everyHours: 6,
    maxMegabytes: 64,
    publisher: 'abuse.ch URLhaus',
    licence: 'CC0',
  },
  {
    name: 'sanesecurity-badmacro',
    url: 'https://mirror.rollernet.us/sanesecurity/badmacro.ndb',
    everyHours: 6,
    maxMegabytes: 32,
    publisher: 'Sanesecurity, by a mirror',
    licence: 'free to use; read the terms of Sanesecurity',
  },
  {
    name: 'sanesecurity-rogue',
    url: 'https://mirror.rollernet.us/sanesecurity/rogue.hdb',
    everyHours: 6,
    maxMegabytes: 32,
    publisher: 'Sanesecurity, by a mirror',
    licence: 'free to use; read the terms of Sanesecurity',
  },
  {
    name: 'interserver',
    url: 'https://sigs.interserver.net/interserver256.hdb',
    everyHours: 12,
    maxMegabytes: 64,
    publisher: 'InterServer',
    licence: 'not stated; ask the publisher',
  },
  {
    name: 'interserver-shell',
    url: 'https://sigs.interserver.net/shell.ldb',
    everyHours: 12,
    maxMegabytes: 32,
    publisher: 'InterServer',
    licence: 'not stated; ask the publisher',
  },
  {
    name: 'rfxn',
    url: 'https://www.rfxn.com/downloads/rfxn.ndb',
    everyHours: 24,
    maxMegabytes: 32,
    publisher: 'Linux Malware Detect (R-fx Networks)',
    licence: 'GPL-2.0',
  },
  {
    name: 'rfxn-hashes',
    url: 'https://www.rfxn.com/downloads/rfxn.hdb',
    everyHours: 24,
    maxMegabytes: 32,
    publisher: 'Linux Malware Detect (R-fx Networks)',
    licence: 'GPL-2.0',
  },
  {
    name: 'yara-forge-core',
    url: 'https://github.com/YARAHQ/yara-forge/releases/latest/download/yara-forge-rules-core.zip',
    everyHours: 24,
    maxMegabytes: 64,
    publisher: 'YARA-Forge (YARAHQ)',
    licence: 'that of each rule, in its metadata',
  },
  {
    name: 'signature-base',
    url: 'https://github.com/Neo23x0/signature-base/archive/refs/heads/master.tar.gz',
    everyHours: 24,
    maxMegabytes: 64,
    publisher: 'Neo23x0 signature-base',
    licence: 'Detection Rule License 1.1',
  },
  {
    name: 'reversinglabs',
    url: 'https://github.com/reversinglabs/reversinglabs-yara-rules/archive/refs/heads/develop.tar.gz',
    everyHours: 24,
    maxMegabytes: 64,
    publisher: 'ReversingLabs',
    licence: 'MIT',
  },
]
