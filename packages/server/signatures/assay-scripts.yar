/*
  Script loaders and miners' scripts. See assay-webshells.yar for the house rules of these files.
*/

rule Assay_Script_WScript_Dropper {
  meta:
    description = "Script for the Windows script host that downloads a file, saves it and runs it, or runs the answer itself"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $host1 = { ( 43 | 63 ) ( 72 ) 65 61 74 65 ( 4f | 6f ) 62 6a 65 63 74 ( 28 | 20 ) }
    $host2 = { ( 41 | 61 ) ( 63 ) 74 69 76 65 ( 58 | 78 ) ( 4f | 6f ) 62 6a 65 63 74 }
    $host3 = { 43 52 45 41 54 45 4f 42 4a 45 43 54 }
    $get1 = "XMLHTTP" nocase
    $get2 = "WinHttpRequest" nocase
    $get3 = "ResponseBody" nocase
    $get4 = "DownloadFile" nocase
    $get5 = "URLDownloadToFile" nocase
    $save1 = "SaveToFile" nocase
    $save2 = "CreateTextFile" nocase
    $save3 = "OpenTextFile" nocase
    $run1 = ".Run(" nocase
    $run2 = ".Run " nocase
    $run3 = ".ShellExecute" nocase
    $run4 = ".Exec(" nocase
    $run5 = "Win32_Process" nocase
    $text = "responseText" nocase
    $wsh = { ( 57 | 77 ) ( 53 | 73 ) 63 72 69 70 74 2e }
    $eval1 = "eval(" nocase
    $eval2 = "Execute " nocase
    $eval3 = "Execute(" nocase
    $eval4 = "ExecuteGlobal" nocase
    $install = "msiexec" nocase
  condition:
    filesize < 64KB and any of ($host*) and any of ($get*) and ((any of ($save*) and any of ($run*) and not $install)
    or ($text and $wsh and any of ($eval*)))
}

rule Assay_Script_Command_Launcher {
  meta:
    description = "Script or HTML application that starts a system tool with a download or an encoded command"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $host1 = { ( 43 | 63 ) ( 72 ) 65 61 74 65 ( 4f | 6f ) 62 6a 65 63 74 ( 28 | 20 ) }
    $host2 = { ( 41 | 61 ) ( 63 ) 74 69 76 65 ( 58 | 78 ) ( 4f | 6f ) 62 6a 65 63 74 }
    $host3 = { ( 47 | 67 ) 65 74 ( 4f | 6f ) 62 6a 65 63 74 28 }
    $run1 = ".Run" nocase
    $run2 = ".ShellExecute" nocase
    $run3 = ".Exec(" nocase
    $run4 = ".Exec " nocase
    $run5 = "Win32_Process" nocase
    $tool1 = "powershell" nocase
    $tool2 = "mshta" nocase
    $tool3 = "regsvr32" nocase
    $tool4 = "rundll32" nocase
    $tool5 = "certutil" nocase
    $tool6 = "bitsadmin" nocase
    $tool7 = "cmd.exe" nocase
    $tool8 = "cmd /c" nocase
    $how1 = " -enc " nocase
    $how2 = " -encodedcommand" nocase
    $how3 = { ( 46 | 66 ) ( 52 | 72 ) ( 4f | 6f ) ( 4d | 6d ) ( 42 | 62 ) ( 41 | 61 ) ( 53 | 73 ) ( 45 | 65 ) 36 34 ( 53 | 73 ) ( 54 | 74 ) ( 52 | 72 ) ( 49 | 69 ) ( 4e | 6e ) ( 47 | 67 ) }  // FromBase64String
    $how4 = "DownloadString" nocase
    $how5 = "DownloadFile" nocase
    $how6 = "Net.WebClient" nocase
    $how7 = "Invoke-WebRequest" nocase
    $how8 = "Start-BitsTransfer" nocase
    $how9 = "iex(" nocase
    $how10 = "urlcache" nocase
    $how11 = "/transfer" nocase
    $how12 = "mshta http" nocase
    $how13 = "mshta.exe http" nocase
    $how14 = "/i:http" nocase
    $how15 = "javascript:" nocase
  condition:
    filesize < 64KB and any of ($host*) and any of ($run*) and any of ($tool*) and any of ($how*)
}

rule Assay_Script_Hidden_Words {
  meta:
    description = "Script for the Windows script host that hides the names of what it starts: pieces, numbers or letters backwards"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $host1 = { ( 43 | 63 ) ( 72 ) 65 61 74 65 ( 4f | 6f ) 62 6a 65 63 74 ( 28 | 20 ) }
    $active = { ( 41 | 61 ) ( 63 ) 74 69 76 65 ( 58 | 78 ) ( 4f | 6f ) 62 6a 65 63 74 }
    $host2 = { ( 57 | 77 ) ( 53 | 73 ) 63 72 69 70 74 2e }
    $run1 = ".Run" nocase
    $run2 = "Run\"]" nocase
    $run3 = "Run']" nocase
    $run4 = ".Exec(" nocase
    $run5 = "ShellExecute" nocase
    $run6 = "Execute(" nocase
    $run7 = "Execute " nocase
    $run8 = "ExecuteGlobal" nocase
    $run9 = "eval(" nocase
    // Backwards: objects of the script host, PowerShell, the start of an address
    $name1 = "llehs.tp" nocase
    $name2 = "ptthlmx" nocase
    $name3 = "llehsrewop" nocase
    $name4 = "maerts.bd" nocase
    $name5 = "//:ptth" nocase
    $name6 = "//:sptth" nocase
    $name7 = "exe.dmc" nocase
    // Pieces of the same names
    $name8 = { 57 53 ( 22 | 27 ) [1-5] ( 22 | 27 ) 63 72 69 }
    $name9 = { ( 53 | 73 ) 63 72 ( 22 | 27 ) [1-5] ( 22 | 27 ) 69 70 74 }
    $name10 = { 63 72 69 70 74 ( 22 | 27 ) [1-5] ( 22 | 27 ) 2e ?? 68 65 6c }
    $name11a = { 72 69 70 74 2e ( 22 | 27 ) [1-5] 22 53 68 65 }
    $name11b = { 72 69 70 74 2e ( 22 | 27 ) [1-5] 22 73 68 65 }
    $name11c = { 72 69 70 74 2e ( 22 | 27 ) [1-5] 27 53 68 65 }
    $name11d = { 72 69 70 74 2e ( 22 | 27 ) [1-5] 27 73 68 65 }
    $name12 = { 72 69 70 74 2e ( 53 | 73 ) ( 22 | 27 ) [1-5] ( 22 | 27 ) 68 65 6c }
    $name13 = { 72 69 70 74 2e ( 53 | 73 ) 68 ( 22 | 27 ) [1-5] ( 22 | 27 ) 65 6c 6c }
    $name14a = { 70 6f 77 ( 22 | 27 ) [1-5] 22 65 72 73 }
    $name14b = { 70 6f 77 ( 22 | 27 ) [1-5] 27 65 72 73 }
    $name15a = { 70 6f 77 65 72 ( 22 | 27 ) [1-5] 22 73 68 }
    $name15b = { 70 6f 77 65 72 ( 22 | 27 ) [1-5] 27 73 68 }
    $name16 = { 70 6f 77 65 72 73 68 ( 22 | 27 ) [1-5] ( 22 | 27 ) 65 6c 6c }
    $name17 = { 58 4d 4c ( 22 | 27 ) [1-5] ( 22 | 27 ) 48 54 54 50 }
    $name18 = { 4d 4c 32 2e ( 22 | 27 ) [1-5] ( 22 | 27 ) 58 4d 4c }
    $name19a = { 44 42 2e ( 22 | 27 ) [1-5] 22 53 74 72 }
    $name19b = { 44 42 2e ( 22 | 27 ) [1-5] 22 73 74 72 }
    $name19c = { 44 42 2e ( 22 | 27 ) [1-5] 27 53 74 72 }
    $name19d = { 44 42 2e ( 22 | 27 ) [1-5] 27 73 74 72 }
    $name20 = { 41 44 4f ( 22 | 27 ) [1-5] ( 22 | 27 ) 44 42 }
    $name21 = "StrReverse(" nocase
    $piece1 = "\" & \""
    $piece2 = "\" + \""
    $piece3 = "' + '"
    $chr1 = ") & chr(" nocase
    $chr2 = ")&chr(" nocase
    $codes = "fromCharCode(" nocase
    $split = ".split(\"\").reverse()" nocase
    $split2 = ".split('').reverse()" nocase
  condition:
    filesize < 48KB and any of ($active, $host*) and any of ($run*) and (any of ($name*, $split*) or #piece1 + #piece2 + #piece3 > 7
    or #chr1 + #chr2 > 11 or ($codes and $active and any of ($host*)))
}

rule Assay_Script_Batch_Dropper {
  meta:
    description = "Batch file that downloads with a system tool and starts the result, or makes it start by itself"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $batch1 = "@echo off" nocase
    $batch2 = "setlocal" nocase
    $batch3 = "@set " nocase
    $batch4 = "cmd /c" nocase
    $tool1 = "certutil" nocase
    $tool2 = "bitsadmin" nocase
    $opt1 = "urlcache" nocase
    $opt2 = "/transfer" nocase
    $opt3 = "-decode" nocase
    $get1 = "DownloadFile" nocase
    $get2 = "Invoke-WebRequest" nocase
    $get3 = "Start-BitsTransfer" nocase
    $get4 = "curl" nocase
    $get5 = "iwr " nocase
    $get6 = "Net.WebClient" nocase
    $get7 = "XMLHTTP" nocase
    $keep1 = "schtasks" nocase
    $keep2 = "\\CurrentVersion\\Run" nocase
    $keep3 = "\\Programs\\Startup" nocase
    $keep4 = "regsvr32" nocase
    $keep5 = "rundll32" nocase
    $keep6 = "attrib +" nocase
    $keep7 = "MpPreference" nocase
    $keep8 = "hidden" nocase
    $keep9 = "%~f0" nocase
    $keep10 = "%public%" nocase
    $keep11 = "wscript" nocase
    $keep12 = "cscript" nocase
    $start1 = "start \"" nocase
    $start2 = "start /" nocase
    $start3 = "start %" nocase
    $start4 = "\n%temp%" nocase
    $start5 = "\n\"%temp%" nocase
    // Broken up by carets, by single letters in variables, and cut out of a variable
    $break1 = "p^ow" nocase
    $break2 = "po^w" nocase
    $break3 = "pow^er" nocase
    $break4 = "power^s" nocase
    $letters = { 25 ?? 25 25 ?? 25 25 ?? 25 }
    $cut = { 2c 31 25 25 }
    $direct1 = "/i:http" nocase
    $direct2 = "mshta http" nocase
    $direct3 = "mshta.exe http" nocase
    $direct4 = "mshta javascript:" nocase
    $direct5 = "mshta vbscript:" nocase
    $direct6 = "rundll32.exe javascript:" nocase
    $direct7 = "rundll32 javascript:" nocase
    $direct8 = "/format:http" nocase
  condition:
    filesize < 64KB and ($batch1 in (0..512) or $batch2 in (0..512) or $batch3 in (0..512) or $batch4 at 0)
    and ((any of ($tool*) and any of ($opt*) and any of ($keep*, $start*)) or (any of ($get*) and any of ($keep*))
    or any of ($break*, $letters, $direct*) or #cut > 4)
}

rule Assay_Script_Shell_Cron_Dropper {
  meta:
    description = "Shell script that downloads code into a shell from cron and removes rivals"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $cron1 = "crontab"
    $cron2 = "/etc/cron.d/"
    $cron3 = "/var/spool/cron"
    $every1 = "* * * * *"
    $every2 = "/1 * * * *"
    $every3 = "/5 * * * *"
    $every4 = "/10 * * * *"
    $every5 = "/15 * * * *"
    $every6 = "/30 * * * *"
    $get1 = "curl "
    $get2 = "wget "
    $pipe1 = "|sh\n"
    $pipe5 = "|sh\""
    $pipe6 = "|sh'"
    $pipe2 = "| sh"
    $pipe3 = "|bash"
    $pipe4 = "| bash"
    $rival1 = "xmrig"
    $rival2 = "minerd"
    $rival3 = "kinsing"
    $rival4 = "kdevtmpfsi"
    $rival5 = "cryptonight"
    $rival6 = { ( 73 74 72 61 ) 74 75 6d }  // stratum
    $kill1 = "pkill -"
    $kill2 = "killall "
    $kill3 = "kill -9"
  condition:
    filesize < 128KB and uint16(0) == 0x2123 and any of ($cron*) and any of ($every*) and any of ($get*) and any of ($pipe*)
    and any of ($rival*) and any of ($kill*)
}

rule Assay_Script_Shell_Bot_Dropper {
  meta:
    description = "Shell script that fetches a bot for many processors into the first directory it can write to"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $cd2 = "cd /tmp || cd /var/run || cd /mnt || cd /root"
    $cd3 = "cd /tmp; wget http"
    $get1 = "wget http://"
    $get2 = "curl -O http://"
    $get3 = "tftp -g -r"
    $mode1 = "chmod 777"
    $mode2 = "chmod +x"
    $mips = "mips"
    $mpsl = "mpsl"
    $arm = "arm7"
    $sh4 = ".sh4"
  condition:
    filesize < 32KB and (uint16(0) == 0x2123 or uint16(0) == 0x6463) and any of ($cd*) and any of ($get*) and any of ($mode*)
    and 2 of ($mips, $mpsl, $arm, $sh4)
}

rule Assay_Script_Python_Packed {
  meta:
    description = "Python that executes code hidden by base64 and compression, with its imports hidden, too"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a1 = "exec(__import__('base64').b64decode("
    $a2 = "exec(__import__(\"base64\").b64decode("
    $a3 = "exec(__import__('zlib').decompress(__import__('base64').b64decode("
    $a4 = "exec(__import__(\"zlib\").decompress(__import__(\"base64\").b64decode("
    $a5 = "exec(__import__('marshal').loads(__import__('zlib').decompress("
    $run = "exec((_)(b'"
    $lambda = { 5f 20 3d 20 6c 61 6d 62 64 61 20 5f 5f 20 3a 20 5f 5f 69 6d 70 6f 72 74 5f 5f 28 }
  condition:
    filesize < 8MB and ($a1 in (0..2048) or $a2 in (0..2048) or $a3 in (0..2048) or $a4 in (0..2048) or $a5 in (0..2048) or ($lambda and $run))
}

rule Assay_Miner_Config {
  meta:
    description = "Configuration of a coin miner with a pool to work for"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $donate = "\"donate-level\""
    $pools = "\"pools\""
    $user = "\"user\""
    $url1 = { ( 73 74 72 61 74 ) 75 6d 2b 74 63 70 3a 2f 2f }  // stratum+tcp://
    $url2 = { ( 73 74 72 61 74 ) 75 6d 2b 73 73 6c 3a 2f 2f }  // stratum+ssl://
    $url3 = "\"url\""
    $algo1 = "\"rx/0\""
    $algo2 = "\"randomx\""
    $algo3 = "cryptonight"
    $algo4 = "\"nicehash\""
    $algo5 = "\"keepalive\""
  condition:
    filesize < 64KB and (uint8(0) == 0x7b or uint8(1) == 0x7b) and $donate and $pools and $user and any of ($url*) and any of ($algo*)
}

rule Assay_Miner_Script {
  meta:
    description = "Script that starts a coin miner in the background"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $url1 = { ( 73 74 72 61 74 ) 75 6d 2b 74 63 70 3a 2f 2f }  // stratum+tcp://
    $url2 = { ( 73 74 72 61 74 ) 75 6d 2b 73 73 6c 3a 2f 2f }  // stratum+ssl://
    $url3 = { ( 73 74 72 61 74 75 ) 6d 32 2b 74 63 70 3a 2f 2f }  // stratum2+tcp://
    $m1 = "xmrig"
    $m2 = "minerd"
    $m3 = "--donate-level"
    $m4 = "cpuminer"
    $m5 = "ethminer"
    $hide1 = "nohup "
    $hide2 = ">/dev/null 2>&1"
    $hide3 = "> /dev/null 2>&1"
    $hide4 = "crontab"
    $hide5 = "--background"
    $hide6 = "systemctl enable"
    $batch = "@echo off" nocase
  condition:
    filesize < 64KB and (uint16(0) == 0x2123 or $batch in (0..64)) and any of ($url*) and any of ($m*) and any of ($hide*)
}
