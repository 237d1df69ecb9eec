/*
  Documents and shortcuts that start something. See assay-webshells.yar for the house rules of these files.
  clamd hands the macros of an Office file over as one decompressed text with a heading of its own; other tools extract them module by
  module, each of which begins with its attributes.
*/

rule Assay_Macro_Downloader {
  meta:
    description = "Office macro that starts by itself, downloads or writes a file and runs it"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $vba1 = "Attribute VB_" nocase
    $vba2 = "REM VBA project extracted from" nocase
    $vba3 = "End Sub" nocase
    $text = "```"
    $auto1 = "AutoOpen" nocase
    $auto2 = "Auto_Open" nocase
    $auto3 = "Document_" nocase
    $auto4 = "Workbook_" nocase
    $auto5 = "AutoExec" nocase
    $auto6 = "AutoClose" nocase
    $auto7 = "Auto_Close" nocase
    $fetch1 = "URLDownloadToFile" nocase
    $fetch2 = "certutil" nocase
    $fetch3 = "bitsadmin" nocase
    $fetch4 = "DownloadFile" nocase
    $get1 = "XMLHTTP" nocase
    $get2 = "WinHttpRequest" nocase
    $get3 = "ResponseBody" nocase
    $get4 = "InternetOpenUrl" nocase
    $get5 = "bin.base64" nocase
    $save1 = "SaveToFile" nocase
    $save2 = "For Binary" nocase
    $save3 = "For Output" nocase
    $save4 = "CreateTextFile" nocase
    $save5 = "responseText" nocase
    $kind1 = ".vbs" nocase
    $kind2 = ".bat" nocase
    $kind3 = ".ps1" nocase
    $kind4 = ".hta" nocase
    $kind5 = ".exe" nocase
    $kind6 = ".dll" nocase
    $kind7 = ".js\"" nocase
    $kind8 = ".scr" nocase
    $run1 = "WScript.Shell" nocase
    $run2 = "Shell.Application" nocase
    $run3 = "ShellExecute" nocase
    $run4 = "winmgmts:" nocase
    $run5 = "Win32_Process" nocase
    $run6 = "Shell(" nocase
    $run7 = "Shell (" nocase
    $run8 = "CreateProcess" nocase
    $run9 = " Shell " nocase
    $run10 = "\nShell " nocase
    $run11 = ".Run " nocase
    $run12 = ".Run(" nocase
  condition:
    ($vba1 in (0..64) or $vba2 in (0..16) or (filesize < 8KB and $vba3 and not $text)) and any of ($auto*) and any of ($run*)
    and (any of ($fetch*) or (any of ($save*) and any of ($get*, $kind*)))
}

rule Assay_Macro_Command {
  meta:
    description = "Office macro that starts by itself and runs a hidden or encoded command"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $vba1 = "Attribute VB_" nocase
    $vba2 = "REM VBA project extracted from" nocase
    $vba3 = "End Sub" nocase
    $text = "```"
    $auto1 = "AutoOpen" nocase
    $start = "Auto_Open" nocase
    $auto2 = "Document_" nocase
    $auto3 = "Workbook_" nocase
    $auto4 = "AutoExec" nocase
    $auto5 = "AutoClose" nocase
    $auto6 = "Auto_Close" nocase
    $cmd1 = "powershell" nocase
    $cmd2 = "mshta" nocase
    $cmd3 = "regsvr32" nocase
    $cmd4 = "rundll32" nocase
    $cmd5 = "cmd.exe" nocase
    $cmd6 = "cmd /c" nocase
    $how1 = " -enc" nocase
    $how2 = " -e " nocase
    $how3 = "-nop" nocase
    $how4 = "-w hidden" nocase
    $how5 = "http://" nocase
    $how6 = "https://" nocase
    $how7 = { ( 46 | 66 ) ( 52 | 72 ) ( 4f | 6f ) ( 4d | 6d ) ( 42 | 62 ) ( 41 | 61 ) ( 53 | 73 ) ( 45 | 65 ) 36 34 }  // frombase64
    $how8 = "iex" nocase
    $run1 = "WScript.Shell" nocase
    $run2 = "Shell.Application" nocase
    $run3 = "Win32_Process" nocase
    $run4 = "winmgmts" nocase
    $run5 = "Shell(" nocase
    $run6 = "Shell (" nocase
    $run7 = "Shell \"" nocase
    $run8 = " Shell " nocase
    $run9 = "\nShell " nocase
    $run10 = "ShellExecute" nocase
    $sheet1 = "=EXEC(" nocase
    $sheet2 = "=CALL(" nocase
  condition:
    (($vba1 in (0..64) or $vba2 in (0..16) or (filesize < 8KB and $vba3 and not $text)) and any of ($start, $auto*) and any of ($cmd*) and any of ($how*)
    and any of ($run*)) or (filesize < 4KB and $start and any of ($sheet*) and not $text)
}

rule Assay_Macro_Hidden_Words {
  meta:
    description = "Office macro that starts by itself and hides the names or the text of what it runs, or changes other documents"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $vba1 = "Attribute VB_" nocase
    $vba2 = "REM VBA project extracted from" nocase
    $vba3 = "End Sub" nocase
    $text = "```"
    $auto1 = "AutoOpen" nocase
    $auto2 = "Auto_Open" nocase
    $auto3 = "Document_" nocase
    $auto4 = "Workbook_" nocase
    $auto5 = "AutoExec" nocase
    $auto6 = "AutoClose" nocase
    $auto7 = "Auto_Close" nocase
    $run1 = { ( 43 | 63 ) ( 72 ) 65 61 74 65 ( 4f | 6f ) 62 6a 65 63 74 }
    $run2 = { ( 47 | 67 ) 65 74 ( 4f | 6f ) 62 6a 65 63 74 }
    $run3 = "Shell(" nocase
    $run4 = "Shell (" nocase
    $run5 = " Shell " nocase
    $run6 = "\nShell " nocase
    $run7 = "CallByName" nocase
    $hide1 = "StrReverse" nocase
    $hide2 = "llehs" nocase
    $hide3 = "ptth" nocase
    $hide4 = "BuiltInDocumentProperties" nocase
    $hide5 = "CustomDocumentProperties" nocase
    $hide6 = "ControlTipText" nocase
    $hide7 = "AlternativeText" nocase
    $hide8 = ".Caption" nocase
    $hide9 = ".Tag" nocase
    $hide10 = "ActiveDocument.Variables" nocase
    $hide11 = " Xor " nocase
    $hide12 = "Chr(Asc(" nocase
    $hide13 = "\"&H\"" nocase
    $piece1 = "\" & \""
    $piece2 = "\" + \""
    $chr1 = "chr(" nocase
    $chr2 = "chr$(" nocase
    $chr3 = "chrw(" nocase
    $spread1 = "VBComponents" nocase
    $spread2 = "AccessVBOM" nocase
    $spread3 = "VBAWarnings" nocase
    $change1 = "NormalTemplate" nocase
    $change2 = "RegWrite" nocase
    $change3 = "AddFromString" nocase
    $change4 = ".Import" nocase
  condition:
    ($vba1 in (0..64) or $vba2 in (0..16) or (filesize < 8KB and $vba3 and not $text)) and any of ($auto*) and ((any of ($run*) and (any of ($hide*)
    or #piece1 + #piece2 > 3 or #chr1 + #chr2 + #chr3 > 9)) or (any of ($spread*) and any of ($change*)))
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
    $declare2 = "Declare Function" nocase
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
