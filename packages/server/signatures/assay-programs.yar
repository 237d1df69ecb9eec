/*
  Programs: shellcode, loaders and tools of intruders. A packer alone (UPX and others) is no finding. See assay-webshells.yar for the
  house rules of these files.
*/

rule Assay_Shellcode_Api_Resolver {
  meta:
    description = "Shellcode which walks the loaded modules of Windows to find functions by hash"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $x64 = { fc 48 83 e4 f0 e8 ( c0 | c8 | cc | d0 ) 00 00 00 41 51 41 50 52 51 56 48 31 d2 65 48 8b 52 60 }
    $x64b = { 41 51 41 50 52 48 31 d2 51 56 65 48 8b 52 60 }
    $x86 = { fc e8 ( 82 | 86 | 89 | 8f ) 00 00 00 60 89 e5 31 ( c0 | d2 ) 64 8b ( 50 | 52 ) 30 8b 52 0c 8b 52 14 }
    $text1 = "0xfc,0x48,0x83,0xe4,0xf0,0xe8" nocase
    $text2 = "0xfc, 0x48, 0x83, 0xe4, 0xf0, 0xe8" nocase
    $text3 = "\\xfc\\x48\\x83\\xe4\\xf0\\xe8" nocase
    $text4 = "0xfc,0xe8,0x82,0x00,0x00,0x00,0x60,0x89,0xe5" nocase
    $text5 = "0xfc,0xe8,0x8f,0x00,0x00,0x00,0x60" nocase
    $text6 = "\\xfc\\xe8\\x82\\x00\\x00\\x00\\x60\\x89\\xe5" nocase
    $text7 = "/EiD5PDo"
    $alloc = { 56 69 72 74 75 61 6c 41 6c 6c 6f 63 }
    $alloc2 = { 6d 6d 61 70 28 }
  condition:
    any of ($x*) or (any of ($text*) and any of ($alloc*) and filesize < 2MB)
}

rule Assay_Loader_Reflective {
  meta:
    description = "Library for Windows that loads itself from memory"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $export1 = { 5f 52 65 66 6c 65 63 74 69 76 65 4c 6f 61 64 65 72 40 34 00 }
    $export2 = { 00 52 65 66 6c 65 63 74 69 76 65 4c 6f 61 64 65 72 00 }
  condition:
    uint16(0) == 0x5a4d and any of ($export*)
}

rule Assay_Tool_Beacon {
  meta:
    description = "Implant of a commercial attack framework, by its messages"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $name = { 62 65 61 63 6f 6e 2e ( 64 6c 6c | 78 36 34 2e 64 6c 6c ) 00 }
    $a2 = "could not spawn %s: %d"
    $a3 = "could not create remote thread in %d: %d"
    $a4 = "Could not open process token: %d (%u)"
    $a5 = "could not run command (w/ token) because of its length of %d bytes!"
    $a6 = "IEX (New-Object Net.Webclient).DownloadString('http://127.0.0.1:%u/')"
    $a7 = "I'm already in SMB mode"
    $a8 = "%s as %s\\%s: %d"
  condition:
    ($name and any of ($a*)) or (4 of ($a*) and filesize > 100KB)
}

rule Assay_Tool_Mimikatz {
  meta:
    description = "Tool that reads passwords out of the memory of Windows"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a1 = "gentilkiwi" ascii wide
    $a2 = "mimikatz" ascii wide
    $a3 = "sekurlsa" ascii wide
    $a4 = "logonpasswords" ascii wide nocase
    $a5 = "lsadump" ascii wide
    $a6 = "kerberos::golden" ascii wide
  condition:
    uint16(0) == 0x5a4d and 3 of ($a*)
}

rule Assay_Bot_Gafgyt {
  meta:
    description = "Bot for Linux devices that floods on command"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $own1 = "KILLATTK"
    $own2 = "LOLNOGTFO"
    $a3 = "GETLOCALIP"
    $a4 = "PONG!"
    $a5 = "/bin/busybox"
    $a6 = "BOTKILL"
    $a7 = "HTTPFLOOD"
  condition:
    uint32(0) == 0x464c457f and any of ($own*) and any of ($a*)
}

rule Assay_Miner_Program {
  meta:
    description = "Coin miner for Windows or Linux"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $url = { ( 73 74 72 61 74 ) 75 6d 2b 74 63 70 3a 2f 2f }  // stratum+tcp://
    $own1 = "donate-level"
    $a3 = "randomx"
    $a4 = "xmrig"
    $own2 = "mining.subscribe"
    $a6 = "cryptonight"
    $a7 = "nicehash"
    $a8 = "hashrate"
  condition:
    (uint32(0) == 0x464c457f or uint16(0) == 0x5a4d) and $url and any of ($own*) and 2 of ($a*)
}

rule Assay_Ransom_Recovery_Removal {
  meta:
    description = "Program or batch file that removes backups and switches recovery off"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a1 = "delete shadows /all" ascii wide nocase
    $a2 = "shadowcopy delete" ascii wide nocase
    $a3 = "wbadmin delete" ascii wide nocase
    $a4 = "recoveryenabled no" ascii wide nocase
    $a5 = "bootstatuspolicy ignoreallfailures" ascii wide nocase
    $a6 = "resize shadowstorage /for" ascii wide nocase
    $batch = "@echo off" nocase
    $direct = "vssadmin" nocase
  condition:
    (uint16(0) == 0x5a4d or $batch in (0..64) or ($direct at 0 and filesize < 2KB)) and 3 of ($a*)
}
