/*
  PowerShell: loaders, reflection and evasion. See assay-webshells.yar for the house rules of these files.
*/

rule Assay_Script_PowerShell_Cradle {
  meta:
    description = "PowerShell which downloads code and runs it, and hides that or gets the code without encryption"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $get1 = "DownloadString" nocase
    $get2 = "DownloadData" nocase
    $get3 = "DownloadFile" nocase
    $get4 = "Invoke-WebRequest" nocase
    $get5 = "Invoke-RestMethod" nocase
    $get6 = "iwr " nocase
    $get7 = "irm " nocase
    $get8 = "Start-BitsTransfer" nocase
    $get9 = "GetResponseStream" nocase
    $get10 = "XMLHTTP" nocase
    $run1 = "iex(" nocase
    $run2 = "iex (" nocase
    $run3 = "iex $" nocase
    $run4 = "|iex" nocase
    $run5 = "| iex" nocase
    $run6 = "Invoke-Expression" nocase
    $run7 = "ScriptBlock]::Create" nocase
    $run8 = "InvokeScript" nocase
    $run9 = { ( 41 | 61 ) ( 53 | 73 ) ( 53 | 73 ) ( 45 | 65 ) ( 4d | 6d ) ( 42 | 62 ) ( 4c | 6c ) ( 59 | 79 ) 5d 3a 3a ( 4c | 6c ) ( 4f | 6f ) ( 41 | 61 ) ( 44 | 64 ) }  // Assembly]::Load
    $run10 = "Get-Alias" nocase
    $start1 = "Start-Process" nocase
    $start2 = "Invoke-Item" nocase
    $start3 = { ( 50 | 70 ) ( 52 | 72 ) ( 4f | 6f ) ( 43 | 63 ) ( 45 | 65 ) ( 53 | 73 ) ( 53 | 73 ) 5d 3a 3a ( 53 | 73 ) ( 54 | 74 ) ( 41 | 61 ) ( 52 | 72 ) ( 54 | 74 ) }  // Process]::Start
    $hide1 = "-w 1 " nocase
    $hide2 = "-nop " nocase
    $hide3 = "-noprofile" nocase
    $hide4 = " -enc" nocase
    $hide5 = "ServerCertificateValidationCallback" nocase
    $hide6 = "DefaultNetworkCredentials" nocase
    $hide7 = { ( 46 | 66 ) ( 52 | 72 ) ( 4f | 6f ) ( 4d | 6d ) ( 42 | 62 ) ( 41 | 61 ) ( 53 | 73 ) ( 45 | 65 ) 36 34 ( 53 | 73 ) ( 54 | 74 ) ( 52 | 72 ) ( 49 | 69 ) ( 4e | 6e ) ( 47 | 67 ) }  // FromBase64String
    $hide8 = "user-agent" nocase
    $hide9 = "MpPreference" nocase
    $hide10 = "\\CurrentVersion\\Run" nocase
    $hide11 = "amsi" nocase
    $hide12 = "[char]" nocase
    $hide13 = "-bxor" nocase
    $hide14 = "-join" nocase
    $plain = "http://"
    $local = "http://localhost"
    $secret = "hidden" nocase
    $text1 = "```"
    $text2 = { 3c 68 74 6d 6c }
    $text3 = "## "
    $text4 = "attack" nocase
    $text5 = "malicious" nocase
    $text6 = "detect" nocase
  condition:
    filesize < 4000 and not any of ($text*) and any of ($get*) and ((any of ($run*) and (any of ($secret, $hide*) or ($plain and not $local)))
    or (any of ($start*) and $secret))
}

rule Assay_Script_PowerShell_Broken_Words {
  meta:
    description = "PowerShell whose command names are broken up by quotes, backticks or a format string"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $name1a = { ( 44 | 64 ) ( 6f ) 77 6e 22 [1-5] ( 22 | 27 ) ( 4c | 6c ) 6f 61 64 }
    $name1b = { ( 44 | 64 ) ( 6f ) 77 6e 27 [1-5] ( 22 | 27 ) ( 4c | 6c ) 6f 61 64 }
    $name2 = { ( 44 | 64 ) ( 6f ) 77 6e 6c ( 22 | 27 ) [1-5] ( 22 | 27 ) 6f 61 64 }
    $name3 = { ( 6f ) 77 6e 6c 6f 61 64 ( 22 | 27 ) [1-5] ( 22 | 27 ) ( 53 | 73 | 46 | 66 | 44 | 64 ) 74 72 }
    $name4a = { 6f 61 64 73 74 72 ( 22 | 27 ) [1-5] 22 69 6e 67 }
    $name4b = { 6f 61 64 73 74 72 ( 22 | 27 ) [1-5] 27 69 6e 67 }
    $name5a = { 61 64 53 74 72 ( 22 | 27 ) [1-5] 22 69 6e 67 }
    $name5b = { 61 64 53 74 72 ( 22 | 27 ) [1-5] 27 69 6e 67 }
    $name6 = { 65 74 2e ( 22 | 27 ) [1-5] ( 22 | 27 ) ( 57 | 77 ) 65 62 }
    $name7a = { ( 57 | 77 ) 65 62 ( 22 | 27 ) [1-5] 22 43 6c 69 }
    $name7b = { ( 57 | 77 ) 65 62 ( 22 | 27 ) [1-5] 22 63 6c 69 }
    $name7c = { ( 57 | 77 ) 65 62 ( 22 | 27 ) [1-5] 27 43 6c 69 }
    $name7d = { ( 57 | 77 ) 65 62 ( 22 | 27 ) [1-5] 27 63 6c 69 }
    $name8a = { ( 57 | 77 ) 65 62 43 ( 22 | 27 ) [1-5] 22 6c 69 }
    $name8b = { ( 57 | 77 ) 65 62 43 ( 22 | 27 ) [1-5] 27 6c 69 }
    $name9 = { 76 6f 6b 65 2d ( 22 | 27 ) [1-5] ( 22 | 27 ) ?? 78 70 72 }
    $name10 = { 6d 73 69 ( 22 | 27 ) [1-5] ( 22 | 27 ) ( 49 | 55 | 53 ) 6e 69 }
    $name11a = { 6d 73 69 ( 22 | 27 ) [1-5] 22 55 74 69 }
    $name11b = { 6d 73 69 ( 22 | 27 ) [1-5] 22 75 74 69 }
    $name11c = { 6d 73 69 ( 22 | 27 ) [1-5] 27 55 74 69 }
    $name11d = { 6d 73 69 ( 22 | 27 ) [1-5] 27 75 74 69 }
    $name12 = "'ie'+'x'" nocase
    $name13 = "'i'+'ex'" nocase
    $name14 = "'i'+'e'+'x'" nocase
    $name15 = "'ie' + 'x'" nocase
    $name16 = "'i' + 'ex'" nocase
    $name17 = "\"ie\"+\"x\"" nocase
    $name18 = "\"i\"+\"ex\"" nocase
    $tick1 = "`e`x" nocase
    $tick2 = "ie`x" nocase
    $tick3 = "i`ex" nocase
    $tick4 = "`Nvo" nocase
    $tick5 = "d`own" nocase
    $tick6 = "downl`oad" nocase
    $tick7 = "web`c" nocase
    $tick8 = "new-o`b" nocase
    $tick9 = "new-ob`j" nocase
    // A format string that puts pieces into another order, where a name is expected
    $order1 = "(\"{1}{0}"
    $order2 = "(\"{1}{2}"
    $order3 = "(\"{2}{"
    $order4 = "(\"{3}{"
    $order5 = "('{1}{0}"
    $order6 = "('{2}{"
    $format1 = "}\" -f" nocase
    $format2 = "}\"-f" nocase
    $format3 = "}' -f" nocase
    $format4 = "}'-f" nocase
    // Letters of a known variable
    $slice1 = "$env:comspec[" nocase
    $slice2 = "$pshome[" nocase
    $slice3 = "$shellid[" nocase
    $slice4 = "$verbosepreference" nocase
    $join = "-join" nocase
    $text1 = "```"
    $text2 = { 3c 68 74 6d 6c }
  condition:
    filesize < 6000 and not any of ($text*)
    and (any of ($name*) or 2 of ($tick*) or (any of ($order*) and any of ($format*)) or (any of ($slice*) and $join))
}

rule Assay_Script_PowerShell_Encoded {
  meta:
    description = "Hidden PowerShell with an encoded command, or one that downloads: base64 of UTF-16 names, in all three alignments"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $ps = "powershell" nocase
    $ps2 = "pwsh" nocase
    // Three times each: Net.WebClient, DownloadString, DownloadFile, DownloadData
    $enc1 = { 54 67 42 6c 41 48 51 41 4c 67 42 58 41 47 55 41 59 67 42 44 41 47 77 41 61 51 42 6c 41 47 34 41 64 41 }
    $enc2 = { 34 41 5a 51 42 30 41 43 34 41 56 77 42 6c 41 47 49 41 51 77 42 73 41 47 6b 41 5a 51 42 75 41 48 51 41 }
    $enc3 = { 4f 41 47 55 41 64 41 41 75 41 46 63 41 5a 51 42 69 41 45 4d 41 62 41 42 70 41 47 55 41 62 67 42 30 41 }
    $enc4 = { 52 41 42 76 41 48 63 41 62 67 42 73 41 47 38 41 59 51 42 6b 41 46 4d 41 64 41 42 79 41 47 6b 41 62 67 42 6e 41 }
    $enc5 = { 51 41 62 77 42 33 41 47 34 41 62 41 42 76 41 47 45 41 5a 41 42 54 41 48 51 41 63 67 42 70 41 47 34 41 5a 77 }
    $enc6 = { 45 41 47 38 41 64 77 42 75 41 47 77 41 62 77 42 68 41 47 51 41 55 77 42 30 41 48 49 41 61 51 42 75 41 47 63 41 }
    $enc7 = { 52 41 42 76 41 48 63 41 62 67 42 73 41 47 38 41 59 51 42 6b 41 45 59 41 61 51 42 73 41 47 55 41 }
    $enc8 = { 51 41 62 77 42 33 41 47 34 41 62 41 42 76 41 47 45 41 5a 41 42 47 41 47 6b 41 62 41 42 6c 41 }
    $enc9 = { 45 41 47 38 41 64 77 42 75 41 47 77 41 62 77 42 68 41 47 51 41 52 67 42 70 41 47 77 41 5a 51 }
    $enc10 = { 52 41 42 76 41 48 63 41 62 67 42 73 41 47 38 41 59 51 42 6b 41 45 51 41 59 51 42 30 41 47 45 41 }
    $enc11 = { 51 41 62 77 42 33 41 47 34 41 62 41 42 76 41 47 45 41 5a 41 42 45 41 47 45 41 64 41 42 68 41 }
    $enc12 = { 45 41 47 38 41 64 77 42 75 41 47 77 41 62 77 42 68 41 47 51 41 52 41 42 68 41 48 51 41 59 51 }
    $opt1 = " -e " nocase
    $opt2 = " -ec " nocase
    $opt3 = " -en " nocase
    $opt4 = " -enc" nocase
    $opt5 = " /e " nocase
    $opt6 = " /enc" nocase
    $opt7 = " -^e" nocase
    $code = { ( 46 | 66 ) ( 52 | 72 ) ( 4f | 6f ) ( 4d | 6d ) ( 42 | 62 ) ( 41 | 61 ) ( 53 | 73 ) ( 45 | 65 ) 36 34 ( 53 | 73 ) ( 54 | 74 ) ( 52 | 72 ) ( 49 | 69 ) ( 4e | 6e ) ( 47 | 67 ) }  // FromBase64String
    $hide1 = "hidden" nocase
    $hide2 = " -w h" nocase
    $hide3 = " -w 1 " nocase
    $hide4 = " -wi" nocase
    $run1 = "iex" nocase
    $run2 = "Invoke-Expression" nocase
    $run3 = "ScriptBlock]::Create" nocase
    $text1 = "```"
    $text2 = { 3c 68 74 6d 6c }
    $text3 = "## "
  condition:
    any of ($ps*) and ((filesize < 512KB and any of ($enc*))
    or (filesize < 6000 and any of ($hide*) and not any of ($text*) and (any of ($opt*) or ($code and any of ($run*)))))
}

rule Assay_Script_PowerShell_Unpacker {
  meta:
    description = "PowerShell that decodes, decompresses or decrypts code within itself and runs it"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $code1 = { ( 46 | 66 ) ( 72 6f 6d ) ( 42 | 62 ) ( 61 ) 73 65 36 34 ( 53 | 73 ) 74 72 69 6e 67 }
    $code2 = "-bxor" nocase
    $code3 = "[char[]]" nocase
    $code4 = "ToInt32(" nocase
    $pack1 = "GzipStream" nocase
    $pack2 = "DeflateStream" nocase
    $text1 = "Encoding]::" nocase
    $text2 = "[char]" nocase
    $text3 = "Array]::Reverse" nocase
    $text4 = "-join" nocase
    $run1 = "iex(" nocase
    $run2 = "iex " nocase
    $run3 = "|iex" nocase
    $run4 = "| iex" nocase
    $run5 = "Invoke-Expression" nocase
    $block1 = "ScriptBlock]::Create" nocase
    $block2 = "InvokeScript" nocase
    $block3 = ".EntryPoint" nocase
    $quote = "```"
  condition:
    filesize < 512KB and any of ($code*) and not $quote and ((any of ($pack*) and any of ($run*, $block*))
    or (any of ($text*) and any of ($run*) and filesize < 16KB))
}

rule Assay_Script_PowerShell_Amsi {
  meta:
    description = "PowerShell that switches the malware interface of Windows off"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a1 = { 61 6d 73 69 49 6e 69 74 46 61 69 6c 65 64 }
    $a2 = "[Ref].Assembly.GetType(" nocase
    $a3 = "NonPublic,Static" nocase
    $a4 = ".SetValue($null" nocase
    $b1 = { 41 6d 73 69 53 63 61 6e 42 75 66 66 65 72 }
    $b2 = "GetProcAddress" nocase
    $b3 = "VirtualProtect" nocase
    $b4 = "Marshal]::Copy(" nocase
    $b5 = "Add-Type" nocase
  condition:
    filesize < 512KB and (all of ($a*) or all of ($b*))
}

rule Assay_Script_PowerShell_Shellcode {
  meta:
    description = "PowerShell that copies a byte array into executable memory and starts it"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a = { 56 69 72 74 75 61 6c 41 6c 6c 6f 63 }
    $b = "CreateThread" nocase
    $c = "Marshal]::Copy(" nocase
    $d = "kernel32" nocase
    $e1 = "[Byte[]]" nocase
    $e2 = { ( 46 | 66 ) ( 52 | 72 ) ( 4f | 6f ) ( 4d | 6d ) ( 42 | 62 ) ( 41 | 61 ) ( 53 | 73 ) ( 45 | 65 ) 36 34 ( 53 | 73 ) ( 54 | 74 ) ( 52 | 72 ) ( 49 | 69 ) ( 4e | 6e ) ( 47 | 67 ) 28 }  // FromBase64String(
    $f1 = "0x3000" nocase
    $f2 = "0x40" nocase
  condition:
    filesize < 2MB and $a and $b and $c and $d and any of ($e*) and all of ($f*)
}
