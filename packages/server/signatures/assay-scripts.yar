/*
  Script loaders, reverse shells, miners' scripts and ransom notes. See assay-webshells.yar for the house rules of these files.
*/

rule Assay_Script_PowerShell_Cradle {
  meta:
    description = "Hidden PowerShell which downloads code and runs it"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $ps = "powershell" nocase
    $h1 = "-w hidden" nocase
    $h2 = "-windowstyle hidden" nocase
    $h3 = "-win hidden" nocase
    $h4 = "-w 1 " nocase
    $b1 = "-nop" nocase
    $b2 = "bypass" nocase
    $b3 = "-noni" nocase
    $d1 = "DownloadString(" nocase
    $d2 = "DownloadData(" nocase
    $d3 = "DownloadFile(" nocase
    $x1 = "IEX(" nocase
    $x2 = "IEX (" nocase
    $x3 = "Invoke-Expression" nocase
    $x4 = "Start-Process" nocase
    $x5 = "|IEX" nocase
    $x6 = "| IEX" nocase
  condition:
    filesize < 2KB and $ps and any of ($h*) and any of ($b*) and any of ($d*) and any of ($x*)
}

rule Assay_Script_PowerShell_Encoded {
  meta:
    description = "PowerShell with an encoded command that downloads something: base64 of UTF-16 names, in all three alignments"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $ps = "powershell" nocase
    // Three times each: Net.WebClient, DownloadString, DownloadFile, DownloadData
    $e1 = { 54 67 42 6c 41 48 51 41 4c 67 42 58 41 47 55 41 59 67 42 44 41 47 77 41 61 51 42 6c 41 47 34 41 64 41 }
    $e2 = { 34 41 5a 51 42 30 41 43 34 41 56 77 42 6c 41 47 49 41 51 77 42 73 41 47 6b 41 5a 51 42 75 41 48 51 41 }
    $e3 = { 4f 41 47 55 41 64 41 41 75 41 46 63 41 5a 51 42 69 41 45 4d 41 62 41 42 70 41 47 55 41 62 67 42 30 41 }
    $e4 = { 52 41 42 76 41 48 63 41 62 67 42 73 41 47 38 41 59 51 42 6b 41 46 4d 41 64 41 42 79 41 47 6b 41 62 67 42 6e 41 }
    $e5 = { 51 41 62 77 42 33 41 47 34 41 62 41 42 76 41 47 45 41 5a 41 42 54 41 48 51 41 63 67 42 70 41 47 34 41 5a 77 }
    $e6 = { 45 41 47 38 41 64 77 42 75 41 47 77 41 62 77 42 68 41 47 51 41 55 77 42 30 41 48 49 41 61 51 42 75 41 47 63 41 }
    $e7 = { 52 41 42 76 41 48 63 41 62 67 42 73 41 47 38 41 59 51 42 6b 41 45 59 41 61 51 42 73 41 47 55 41 }
    $e8 = { 51 41 62 77 42 33 41 47 34 41 62 41 42 76 41 47 45 41 5a 41 42 47 41 47 6b 41 62 41 42 6c 41 }
    $e9 = { 45 41 47 38 41 64 77 42 75 41 47 77 41 62 77 42 68 41 47 51 41 52 67 42 70 41 47 77 41 5a 51 }
    $e10 = { 52 41 42 76 41 48 63 41 62 67 42 73 41 47 38 41 59 51 42 6b 41 45 51 41 59 51 42 30 41 47 45 41 }
    $e11 = { 51 41 62 77 42 33 41 47 34 41 62 41 42 76 41 47 45 41 5a 41 42 45 41 47 45 41 64 41 42 68 41 }
    $e12 = { 45 41 47 38 41 64 77 42 75 41 47 77 41 62 77 42 68 41 47 51 41 52 41 42 68 41 48 51 41 59 51 }
  condition:
    filesize < 512KB and $ps and any of ($e*)
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
    $e2 = "FromBase64String(" nocase
    $f1 = "0x3000" nocase
    $f2 = "0x40" nocase
  condition:
    filesize < 2MB and $a and $b and $c and $d and any of ($e*) and all of ($f*)
}

rule Assay_Script_WScript_Dropper {
  meta:
    description = "Script for the Windows script host that downloads a file, saves it and runs it"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $shell1 = "WScript.Shell" nocase
    $shell2 = "Shell.Application" nocase
    $get1 = "MSXML2.XMLHTTP" nocase
    $get2 = "Microsoft.XMLHTTP" nocase
    $get3 = "MSXML2.ServerXMLHTTP" nocase
    $get4 = "WinHttp.WinHttpRequest" nocase
    $stream1 = { 41 44 4f 44 42 2e 53 74 72 65 61 6d }
    $stream2 = { 61 64 6f 64 62 2e 73 74 72 65 61 6d }
    $stream3 = { 41 44 4f 44 42 2e 53 54 52 45 41 4d }
    $save = "SaveToFile" nocase
    $dir1 = "%TEMP%" nocase
    $dir2 = "%APPDATA%" nocase
    $dir3 = "GetSpecialFolder(2)" nocase
    $dir4 = "%PUBLIC%" nocase
    $dir5 = "%ProgramData%" nocase
    $run1 = ".Run(" nocase
    $run2 = ".Run " nocase
    $run3 = ".ShellExecute" nocase
    $run4 = ".Exec(" nocase
  condition:
    filesize < 64KB and any of ($shell*) and any of ($get*) and any of ($stream*) and $save and any of ($dir*) and any of ($run*)
}

rule Assay_Script_HTA_Loader {
  meta:
    description = "HTML application that starts a hidden command and closes its window"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $tag1 = { 3c 73 63 72 69 70 74 }
    $tag2 = { 3c 53 43 52 49 50 54 }
    $tag3 = "<hta:application" nocase
    $shell = "WScript.Shell" nocase
    $close1 = "window.close" nocase
    $close2 = "self.close" nocase
    $run = ".Run" nocase
    $cmd1 = "powershell" nocase
    $cmd2 = "cmd.exe /c" nocase
    $cmd3 = "cmd /c" nocase
    $cmd4 = "mshta" nocase
    $cmd5 = "regsvr32" nocase
    $cmd6 = "rundll32" nocase
  condition:
    filesize < 256KB and ($tag1 in (0..1024) or $tag2 in (0..1024) or $tag3 in (0..1024)) and $shell and any of ($close*) and $run and any of ($cmd*)
}

rule Assay_Script_Batch_Dropper {
  meta:
    description = "Batch file that downloads with a system tool and makes the result start by itself"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $batch = "@echo off" nocase
    $get1 = "certutil -urlcache" nocase
    $get2 = "certutil.exe -urlcache" nocase
    $get3 = "bitsadmin /transfer" nocase
    $get4 = "bitsadmin.exe /transfer" nocase
    $get5 = "DownloadFile('http" nocase
    $get6 = "DownloadFile(\"http" nocase
    $keep1 = "schtasks /create" nocase
    $keep2 = "\\CurrentVersion\\Run" nocase
    $keep3 = "\\Start Menu\\Programs\\Startup" nocase
    $keep4 = "regsvr32 /s" nocase
    $keep5 = "attrib +h +s" nocase
    $keep6 = "Add-MpPreference -ExclusionPath" nocase
  condition:
    filesize < 64KB and $batch in (0..256) and any of ($get*) and any of ($keep*)
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
    $cron4 = "/etc/crontab"
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
    $rival6 = "stratum"
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
    $cd1 = "cd /tmp || cd /var/run || cd /mnt || cd /root || cd /"
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

rule Assay_Script_ReverseShell_Bash {
  meta:
    description = "Shell whose input and output go to a network connection: a script, or nothing else in the file"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $tcp1 = "/dev/tcp/"
    $tcp2 = "/dev/udp/"
    $i1 = "bash -i"
    $i2 = "sh -i"
    $i3 = "while read "
    $d1 = ">& /dev/"
    $d2 = ">&/dev/"
    $d3 = "<>/dev/"
    $d4 = "<> /dev/"
    $b1 = "0>&1"
    $b2 = "2>&1"
    $b3 = "2>&5"
    $b4 = "<&5 "
  condition:
    any of ($tcp*) and any of ($i*) and any of ($d*) and any of ($b*) and (filesize < 300 or (filesize < 4KB and uint16(0) == 0x2123))
}

rule Assay_Script_ReverseShell_Fifo {
  meta:
    description = "Shell connected to netcat through a named pipe: a script, or nothing else in the file"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $f = "mkfifo /"
    $s1 = "/bin/sh -i 2>&1"
    $s2 = "/bin/bash -i 2>&1"
    $s3 = "sh -i 2>&1"
    $n1 = "|nc "
    $n2 = "| nc "
    $n3 = "|ncat "
    $n4 = "| ncat "
    $n5 = "openssl s_client"
    $n6 = "|telnet "
  condition:
    $f and any of ($s*) and any of ($n*) and (filesize < 400 or (filesize < 4KB and uint16(0) == 0x2123))
}

rule Assay_Script_ReverseShell_Python {
  meta:
    description = "Python that ties a shell to a socket"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a = "socket.socket("
    $b = ".connect(("
    $c1 = "os.dup2(s.fileno(),0)"
    $c2 = "os.dup2(s.fileno(), 0)"
    $d1 = "os.dup2(s.fileno(),1)"
    $d2 = "os.dup2(s.fileno(), 1)"
    $e1 = "pty.spawn("
    $e2 = "subprocess.call(["
    $e3 = "/bin/sh"
    $e4 = "/bin/bash"
  condition:
    filesize < 3KB and $a and $b and any of ($c*) and any of ($d*) and any of ($e*)
}

rule Assay_Script_ReverseShell_Perl {
  meta:
    description = "Perl that ties a shell to a socket"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a = "use Socket"
    $b = "getprotobyname("
    $c1 = "open(STDIN,\">&"
    $c2 = "open(STDIN, \">&"
    $d1 = "open(STDOUT,\">&"
    $d2 = "open(STDOUT, \">&"
    $e1 = "exec(\"/bin/sh -i\")"
    $e2 = "exec(\"/bin/bash -i\")"
    $e3 = "exec(\"sh -i\")"
    $e4 = "exec{"
  condition:
    filesize < 8KB and $a and $b and any of ($c*) and any of ($d*) and any of ($e*)
}

rule Assay_Script_ReverseShell_PHP {
  meta:
    description = "PHP page that ties a shell to a socket"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<?php" nocase
    $a = "fsockopen(" nocase
    $b1 = "proc_open(" nocase
    $b2 = "/bin/sh -i <&3" nocase
    $c1 = "/bin/sh -i"
    $c2 = "/bin/bash -i"
    $d1 = "stream_select(" nocase
    $d2 = "<&3 >&3 2>&3"
  condition:
    filesize < 64KB and (uint16(0) == 0x3f3c or $page in (0..512)) and $a and any of ($b*) and any of ($c*) and any of ($d*)
}

rule Assay_Script_ReverseShell_PowerShell {
  meta:
    description = "PowerShell that runs what a connection sends and answers with the output"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $a = "Sockets.TCPClient(" nocase
    $b = ".GetStream()" nocase
    $c1 = "iex $data 2>&1" nocase
    $c2 = "Invoke-Expression $data 2>&1" nocase
    $c3 = "Invoke-Expression -Command $data 2>&1" nocase
    $d = "Out-String" nocase
    $e = ".Flush()" nocase
  condition:
    filesize < 8KB and $a and $b and any of ($c*) and $d and $e
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
    $url1 = "stratum+tcp://"
    $url2 = "stratum+ssl://"
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
    $url1 = "stratum+tcp://"
    $url2 = "stratum+ssl://"
    $url3 = "stratum2+tcp://"
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

rule Assay_Ransom_Note {
  meta:
    description = "Short text which says that files were encrypted and how to pay for the key"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $what1 = "your files have been encrypted" nocase
    $what2 = "your files are encrypted" nocase
    $what3 = "your files were encrypted" nocase
    $what4 = "your network has been encrypted" nocase
    $what5 = "your data has been encrypted" nocase
    $what6 = "your data are stolen and encrypted" nocase
    $what7 = "files have been encrypted with" nocase
    $what8 = "your important files are encrypted" nocase
    $pay1 = "bitcoin" nocase
    $pay2 = "monero" nocase
    $pay3 = " BTC"
    $pay4 = "decryption tool" nocase
    $pay5 = "ransom" nocase
    $pay6 = "decryptor" nocase
    $where1 = ".onion"
    $where2 = "Tor Browser" nocase
    $where3 = "torproject.org" nocase
    $not1 = "do not rename" nocase
    $not2 = "don't rename" nocase
    $not3 = "do not try to decrypt" nocase
    $not4 = "do not modify" nocase
    $not5 = "third party software" nocase
    $not6 = "third-party software" nocase
    $not7 = "personal id" nocase
    $not8 = "do not attempt to" nocase
    $not9 = "price will be doubled" nocase
    $not10 = "your personal key" nocase
    $not11 = "permanent data loss" nocase
  condition:
    filesize < 12KB and any of ($what*) and any of ($pay*) and any of ($where*) and any of ($not*)
}
