/*
  Documents and shortcuts that start something. See assay-webshells.yar for the house rules of these files.
  clamd hands the macros of an Office file over as one decompressed text with a heading of its own; other tools extract them module by
  module, each of which begins with its attributes.
*/

rule Assay_Macro_Downloader {
  meta:
    description = "Office macro that starts by itself, downloads a file and runs it"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $vba = "Attribute VB_" nocase
    $project = "REM VBA project extracted from" nocase
    $auto1 = "Sub AutoOpen" nocase
    $auto2 = "Sub Auto_Open" nocase
    $auto3 = "Sub Document_Open" nocase
    $auto4 = "Sub Workbook_Open" nocase
    $auto5 = "Sub AutoExec" nocase
    $auto6 = "Sub AutoClose" nocase
    $auto7 = "Sub Auto_Close" nocase
    $auto8 = "Sub Document_Close" nocase
    $auto9 = "Sub Document_New" nocase
    $get1 = "URLDownloadToFile" nocase
    $get2 = "MSXML2.XMLHTTP" nocase
    $get3 = "Microsoft.XMLHTTP" nocase
    $get4 = "MSXML2.ServerXMLHTTP" nocase
    $get5 = "WinHttp.WinHttpRequest" nocase
    $get6 = "certutil" nocase
    $get7 = "bitsadmin" nocase
    $get8 = "DownloadFile(" nocase
    $get9 = "DownloadString(" nocase
    $run1 = "WScript.Shell" nocase
    $run2 = "Shell.Application" nocase
    $run3 = "ShellExecute" nocase
    $run4 = "winmgmts:" nocase
    $run5 = "Shell(" nocase
    $run6 = "Shell (" nocase
    $run7 = "CreateProcess" nocase
    $run8 = "Shell \"" nocase
  condition:
    ($vba in (0..64) or $project in (0..16)) and any of ($auto*) and any of ($get*) and any of ($run*)
}

rule Assay_Macro_Command {
  meta:
    description = "Office macro that starts by itself and runs a hidden or encoded command"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $vba = "Attribute VB_" nocase
    $project = "REM VBA project extracted from" nocase
    $auto1 = "Sub AutoOpen" nocase
    $auto2 = "Sub Auto_Open" nocase
    $auto3 = "Sub Document_Open" nocase
    $auto4 = "Sub Workbook_Open" nocase
    $auto5 = "Sub AutoExec" nocase
    $auto6 = "Sub AutoClose" nocase
    $cmd1 = "powershell" nocase
    $cmd2 = "mshta" nocase
    $cmd3 = "regsvr32" nocase
    $cmd4 = "rundll32" nocase
    $cmd5 = "cmd.exe /c" nocase
    $cmd6 = "cmd /c" nocase
    $cmd7 = "wscript.exe" nocase
    $how1 = "-enc" nocase
    $how2 = "hidden" nocase
    $how3 = "-nop" nocase
    $how4 = "bypass" nocase
    $how5 = "http://" nocase
    $how6 = "https://" nocase
    $how7 = "vbHide" nocase
    $how8 = "frombase64string" nocase
    $run1 = "WScript.Shell" nocase
    $run2 = "Shell.Application" nocase
    $run3 = "Win32_Process" nocase
    $run4 = "Shell(" nocase
    $run5 = "Shell (" nocase
    $run6 = "Shell \"" nocase
    $run7 = "ShellExecute" nocase
  condition:
    ($vba in (0..64) or $project in (0..16)) and any of ($auto*) and any of ($cmd*) and any of ($how*) and any of ($run*)
}

rule Assay_Macro_Shellcode {
  meta:
    description = "Office macro that puts bytes into executable memory and starts them"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $vba = "Attribute VB_" nocase
    $project = "REM VBA project extracted from" nocase
    $declare = "Declare PtrSafe" nocase
    $declare2 = "Private Declare" nocase
    $mem1 = "VirtualAlloc" nocase
    $mem2 = "HeapCreate" nocase
    $copy1 = "RtlMoveMemory" nocase
    $copy2 = "WriteProcessMemory" nocase
    $go1 = "CreateThread" nocase
    $go2 = "CreateRemoteThread" nocase
    $go3 = "EnumSystemLocales" nocase
    $go4 = "QueueUserAPC" nocase
  condition:
    ($vba in (0..64) or $project in (0..16)) and any of ($declare*) and any of ($mem*) and any of ($copy*) and any of ($go*)
}

rule Assay_Document_DDE_Command {
  meta:
    description = "Word document whose field starts a command interpreter when it is updated"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $xml = "<?xml"
    $field = "instrText"
    $dde1 = "DDEAUTO" nocase
    $dde2 = "DDE \"" nocase
    $cmd1 = "cmd.exe" nocase
    $cmd2 = "powershell" nocase
    $cmd3 = "mshta" nocase
  condition:
    $xml in (0..16) and $field and any of ($dde*) and any of ($cmd*)
}

rule Assay_Document_RTF_Equation {
  meta:
    description = "RTF that updates an equation object by itself when opened"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $rtf = "{\\rt"
    $update = "\\objupdate" nocase
    $class1 = "4571756174696f6e2e33" nocase
    $class2 = "4571756174696F6E2E32" nocase
    $class3 = "02ce020000000000c000000000000046" nocase
  condition:
    $rtf at 0 and $update and any of ($class*)
}

rule Assay_Document_Msdt_Link {
  meta:
    description = "Page that starts the support tool of Windows with a command of its own"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $tag1 = { 3c 73 63 72 69 70 74 }
    $tag2 = { 3c 53 43 52 49 50 54 }
    $tag3 = { 3c 68 74 6d 6c }
    $tag4 = { 3c 48 54 4d 4c }
    $msdt = "ms-msdt:" nocase
    $browse = "IT_BrowseForFile" nocase
    $go = "location" nocase
  condition:
    ($tag1 in (0..512) or $tag2 in (0..512) or $tag3 in (0..512) or $tag4 in (0..512)) and $msdt and $browse and $go
}

rule Assay_Shortcut_Loader {
  meta:
    description = "Shortcut that starts a script interpreter with a download or a hidden or encoded command"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $lnk = { 4c 00 00 00 01 14 02 00 00 00 00 00 c0 00 00 00 00 00 00 46 }
    $tool1 = "powershell" ascii wide nocase
    $tool2 = "mshta" ascii wide nocase
    $tool3 = "certutil" ascii wide nocase
    $tool4 = "bitsadmin" ascii wide nocase
    $tool5 = "regsvr32" ascii wide nocase
    $tool6 = "cmd.exe" ascii wide nocase
    $tool7 = "wscript" ascii wide nocase
    $tool8 = "curl.exe" ascii wide nocase
    $how1 = "DownloadString" ascii wide nocase
    $how2 = "DownloadFile" ascii wide nocase
    $how3 = "-windowstyle hidden" ascii wide nocase
    $how4 = "-w hidden" ascii wide nocase
    $how5 = "-encodedcommand" ascii wide nocase
    $how6 = "-enc " ascii wide nocase
    $how7 = "http://" ascii wide nocase
    $how8 = "https://" ascii wide nocase
    $how9 = "Invoke-Expression" ascii wide nocase
    $how10 = "FromBase64String" ascii wide nocase
    $how11 = "-urlcache" ascii wide nocase
    $how12 = "javascript:" ascii wide nocase
  condition:
    filesize < 2MB and $lnk at 0 and any of ($tool*) and any of ($how*)
}
