/*
  Web shells: pages which run what the request tells them to.

  Written for Assay, loaded by clamd (its subset of YARA: no modules, no external variables, strings of two bytes or more, 64 strings a
  rule), by libyara 4 and by YARA-X. House rules for every .yar file of this folder:
  - A rule asks for a combination that only an attack needs, and for the place where it is one: the start of a page, the header of a
    program, a file too short to be a text about it. Documents that quote an attack are not findings.
  - A rule names what an attack cannot do without (where its input comes from, what runs it, what hides it), not one spelling of it:
    a jump of a few bytes stands for blanks, quotes and names of variables. clamd also scans texts in small letters with every run
    of blanks as one.
  - No regular expressions and no loops: clamd runs expressions over the whole file. Strings below four bytes match everywhere, and
    are not used on their own.
  - clamd finds a string by its first three fixed bytes, in hex by those of each part between jumps, and compares the rest wherever they
    are. A group of one moves them on to rarer bytes: ( 77 68 69 6c ) 65 20 72 is found by "e r" instead of "whi". Where only two bytes
    follow a quote, there is a string for each quote, so that the quote is one of the three.
  - The rules do not match their own source: an anchor at the start of the file, a limit of size below that of the source, or one part
    written in hexadecimal. No HTML tag stands here as text, or clamd takes the file for a page and cuts it into pieces.
*/

rule Assay_Webshell_PHP_Eval {
  meta:
    description = "PHP page that evaluates or executes a request parameter"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page = "<?php" nocase
    // A call, up to 28 bytes, and a variable of the request
    $eval1 = { 65 76 61 6c 28 [0-28] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval2 = { 65 76 61 6c 20 28 [0-28] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval3 = { ( 61 73 73 65 ) 72 74 28 [0-20] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval4 = { 63 72 65 61 74 65 5f 66 75 6e 63 74 69 6f 6e [1-20] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval5 = { 63 61 6c 6c 5f 75 73 65 72 5f 66 75 6e 63 [1-8] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval6 = { 61 72 72 61 79 5f 6d 61 70 [1-3] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval7 = { 69 6e 63 6c 75 64 65 [1-4] 70 68 70 3a 2f 2f 69 6e 70 75 74 }
    $eval8 = { 65 76 61 6c 28 [0-32] 70 68 70 3a 2f 2f 69 6e 70 75 74 }
    // preg_replace with the modifier that evaluates
    $eval9 = { 2f 65 ( 27 | 22 ) [1-4] 24 5f }
    // The name of the function is a value: an element of an array, a string in parentheses, a short variable
    $eval10 = { 5d 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval11 = { 7d 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval12 = { ( 27 | 22 ) 29 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval13 = { 24 ?? 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval14 = { 24 ?? ?? 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval15 = { 40 24 [2-8] 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval16 = { 0a 24 [1-4] 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval17 = { 3b 24 [1-4] 28 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $eval18 = { 52 65 66 6c 65 63 74 69 6f 6e 46 75 6e 63 74 69 6f 6e [1-3] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec1 = { 73 79 73 74 65 6d 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec2 = { 73 79 73 74 65 6d 20 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec3 = { 65 78 65 63 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec4 = { 65 78 65 63 20 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec5 = { 70 61 73 73 74 68 72 75 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec6 = { 70 61 73 73 74 68 72 75 20 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec7 = { 70 6f 70 65 6e 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec8 = { ( 70 72 6f ) 63 5f 6f 70 65 6e 28 [0-24] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec9 = { 65 63 68 6f 20 60 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $exec10 = { 3d 20 60 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $write = { ( 66 69 6c 65 ) 5f 70 75 74 5f 63 6f 6e 74 65 6e 74 73 [1-3] 24 5f ( 50 4f 53 54 | 47 45 54 | 52 45 51 55 45 53 54 | 43 4f 4f 4b 49 45 ) }
    $safe1 = "escapeshell" nocase
    $safe2 = "intval(" nocase
    $safe3 = "(int)" nocase
    $safe4 = "in_array(" nocase
  condition:
    filesize < 200KB and (uint16(0) == 0x3f3c or $page in (0..512))
    and (any of ($eval*, $write) or (any of ($exec*) and not any of ($safe*)))
}

rule Assay_Webshell_PHP_Variable {
  meta:
    description = "Short PHP page that passes a request parameter on to a call which evaluates or executes it, and checks nothing"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page = "<?php" nocase
    $from1 = "_GET"
    $from2 = "_POST"
    $from3 = "_REQUEST"
    $from4 = "_COOKIE"
    $from5 = { 24 5f 53 45 52 56 45 52 5b ?? 48 54 54 50 5f }
    $from6 = "php://input"
    $from7 = { ( 67 65 74 61 ) 6c 6c 68 65 61 64 65 72 73 }  // getallheaders
    $from8 = { ( 66 69 6c 74 65 ) 72 5f 69 6e 70 75 74 28 }  // filter_input(
    $sink1 = { 65 76 61 6c [0-1] 28 24 }
    $sink2 = { ( 61 ) 73 73 65 72 74 [0-1] 28 24 }
    $sink3 = { 73 79 73 74 65 6d [0-2] 28 24 }
    $sink4 = { 73 68 65 6c 6c 5f 65 78 65 63 [0-2] 28 24 }
    $sink5 = { ( 20 | 40 | 0a | 09 | 3b | 3d | 28 | 7b ) 65 78 65 63 [0-1] 28 24 }
    $sink6 = { 70 61 73 73 74 68 72 75 [0-2] 28 24 }
    $sink7 = { 70 6f 70 65 6e [0-1] 28 24 }
    $sink8 = { ( 70 72 6f ) 63 5f 6f 70 65 6e [0-1] 28 24 }
    $sink9 = { 70 63 6e 74 6c 5f 65 78 65 63 [0-1] 28 24 }
    $sink10 = "create_function("
    $sink11 = "echo `$"
    $sink12 = "= `$"
    $by1 = "call_user_func"
    $by2 = "array_map("
    $by3 = "array_filter("
    $by4 = "usort("
    $name1 = { ( 27 | 22 ) ( 61 ) 73 73 65 72 74 ( 27 | 22 ) }
    $name2 = { ( 27 | 22 ) 73 79 73 74 65 6d ( 27 | 22 ) }
    $name3 = { ( 27 | 22 ) 73 68 65 6c 6c 5f 65 78 65 63 ( 27 | 22 ) }
    $name4 = { ( 27 | 22 ) 70 61 73 73 74 68 72 75 ( 27 | 22 ) }
    $safe1 = "escapeshell"
    $safe2 = "in_array("
    $safe3 = { ( 70 72 ) 65 67 5f 6d 61 74 63 68 28 }  // preg_match(
    $safe4 = "ctype_"
    $safe5 = { ( 69 ) 6e 74 76 61 6c 28 }  // intval(
    $safe6 = "(int)"
    $safe7 = "FILTER_VALIDATE"
    $safe8 = "require"
    $safe9 = { ( 6e 61 6d ) 65 73 70 61 63 65 20 }  // "namespace "
  condition:
    filesize < 6KB and (uint16(0) == 0x3f3c or $page in (0..512)) and any of ($from*)
    and (any of ($sink*) or (any of ($by*) and any of ($name*)) or 2 of ($name*)) and not any of ($safe*)
}

rule Assay_Webshell_PHP_Hidden_Name {
  meta:
    description = "PHP page that takes a request parameter and hides the name of the function which runs it"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page = "<?php" nocase
    $from1 = "_GET"
    $from2 = "_POST"
    $from3 = "_REQUEST"
    $from4 = "_COOKIE"
    $from5 = { 24 5f 53 45 52 56 45 52 5b ?? 48 54 54 50 5f }
    $from6 = "php://input"
    $from7 = { ( 67 65 74 61 ) 6c 6c 68 65 61 64 65 72 73 }  // getallheaders
    $from8 = "'_PO'"
    $from9 = "'_GE'"
    // base64
    $name1 = "c3lzdGVt"
    $name2 = "c2hlbGxfZXhlYw"
    $name3 = "cGFzc3RocnU"
    $name4 = "YXNzZXJ0"
    // rot13
    $name5 = "flfgrz"
    $name6 = "furyy_rkrp"
    $name7 = "cnffgueh"
    $name8 = "nffreg"
    // Backwards
    $name9 = "metsys"
    $name10 = "cexe_llehs"
    $name11 = "urhtssap"
    $name12 = "tressa"
    $name13 = "edoced_46esab"
    // Escaped bytes
    $name14 = "\\x73\\x79\\x73\\x74"
    $name15 = "\\x65\\x76\\x61\\x6c" nocase
    $name16 = "\\x61\\x73\\x73\\x65"
    $name17 = "\\x73\\x68\\x65\\x6c" nocase
    $name18 = "\\x70\\x61\\x73\\x73\\x74"
    // Numbers
    $name19 = { 63 68 72 28 31 31 35 29 [1-3] 63 68 72 28 31 32 31 29 }
    $name20 = { 63 68 72 28 31 30 31 29 [1-3] 63 68 72 28 31 31 38 29 }
    // Pieces
    $name21a = { 73 79 ( 27 | 22 ) [1-5] 22 73 74 }
    $name21b = { 73 79 ( 27 | 22 ) [1-5] 27 73 74 }
    $name22a = { 73 79 73 ( 27 | 22 ) [1-5] 22 74 65 }
    $name22b = { 73 79 73 ( 27 | 22 ) [1-5] 27 74 65 }
    $name23a = { 73 79 73 74 ( 27 | 22 ) [1-5] 22 65 6d }
    $name23b = { 73 79 73 74 ( 27 | 22 ) [1-5] 27 65 6d }
    $name24 = { 73 68 65 6c 6c ( 27 | 22 ) [1-5] ( 27 | 22 ) 5f 65 }
    $name25a = { 73 68 65 6c 6c 5f ( 27 | 22 ) [1-5] 22 65 78 }
    $name25b = { 73 68 65 6c 6c 5f ( 27 | 22 ) [1-5] 27 65 78 }
    $name26 = { 70 61 73 73 ( 27 | 22 ) [1-5] ( 27 | 22 ) 74 68 72 75 }
    $name27a = { 61 73 22 [1-5] ( 27 | 22 ) 73 65 72 74 }
    $name27b = { 61 73 27 [1-5] ( 27 | 22 ) 73 65 72 74 }
    $name28a = { ( 61 ) 73 73 22 [1-5] ( 27 | 22 ) 65 72 74 }
    $name28b = { ( 61 ) 73 73 27 [1-5] ( 27 | 22 ) 65 72 74 }
    $name29a = { 62 61 73 65 36 34 5f ( 27 | 22 ) [1-5] 22 64 65 }
    $name29b = { 62 61 73 65 36 34 5f ( 27 | 22 ) [1-5] 27 64 65 }
    $name30 = { 62 61 73 65 ( 27 | 22 ) [1-5] ( 27 | 22 ) 36 34 }
    $index = { ( 30 | 31 | 32 | 33 | 34 | 35 | 36 | 37 | 38 | 39 ) 5d 2e 24 }
  condition:
    filesize < 64KB and (uint16(0) == 0x3f3c or $page in (0..512)) and any of ($from*) and (any of ($name*) or #index > 3)
}

rule Assay_Webshell_PHP_Packed {
  meta:
    description = "PHP page that evaluates compressed, rotated or encoded code"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page = "<?php" nocase
    $direct1 = { 65 76 61 6c 28 [0-16] 62 61 73 65 36 34 5f 64 65 63 6f 64 65 }
    $direct2 = { 65 76 61 6c 20 28 [0-16] 62 61 73 65 36 34 5f 64 65 63 6f 64 65 }
    $direct3 = { 65 76 61 6c 20 28 [0-32] 67 7a 69 6e 66 6c 61 74 65 }
    $direct4 = { 65 76 61 6c 28 [0-32] 67 7a 69 6e 66 6c 61 74 65 }
    $direct5 = { 65 76 61 6c 28 [0-32] 67 7a 75 6e 63 6f 6d 70 72 65 73 73 }
    $direct6 = { 65 76 61 6c 28 [0-32] 67 7a 64 65 63 6f 64 65 }
    $direct7 = { 65 76 61 6c 28 [0-32] ( 73 74 72 5f 72 ) 6f 74 31 33 }
    $direct8 = { 65 76 61 6c 28 [0-16] 68 65 78 32 62 69 6e }
    $direct9 = { 65 76 61 6c 28 [0-16] ( 63 6f 6e 76 65 72 74 ) 5f 75 75 64 65 63 6f 64 65 }
    $direct10 = { 65 76 61 6c 28 [0-16] ( 73 ) 74 72 72 65 76 }
    $direct11 = { ( 61 73 73 65 ) 72 74 28 [0-16] 62 61 73 65 36 34 5f 64 65 63 6f 64 65 }
    $direct12 = { ( 61 73 73 65 ) 72 74 28 [0-16] 67 7a 69 6e 66 6c 61 74 65 }
    $direct13 = { 63 72 65 61 74 65 5f 66 75 6e 63 74 69 6f 6e [1-12] 62 61 73 65 36 34 5f 64 65 63 6f 64 65 }
    $eval1 = { 65 76 61 6c [0-2] 28 24 }
    $eval2 = "eval(\"?>" nocase
    $eval3 = "eval('?>" nocase
    $code = "base64_decode" nocase
    $pack1 = "gzinflate" nocase
    $pack2 = "gzuncompress" nocase
    $pack3 = "str_rot13" nocase
    $pack4 = "gzdecode" nocase
    $pack5 = { ( 27 | 22 ) 62 61 73 65 36 34 5f 64 65 63 6f 64 65 ( 27 | 22 ) }
  condition:
    (uint16(0) == 0x3f3c or $page in (0..512))
    and (any of ($direct*) or (filesize < 512KB and any of ($eval*) and $code and any of ($pack*)))
}

rule Assay_Webshell_PHP_Family {
  meta:
    description = "PHP page with the name of a well-known web shell and calls that run commands, or a file manager that does so"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page = "<?php" nocase
    $n1 = "FilesMan"
    $n2 = "c99shell" nocase
    $n3 = "r57shell" nocase
    $n4 = "b374k" nocase
    $n5 = "WSO_VERSION"
    $n6 = "IndoXploit" nocase
    $n7 = "AnonymousFox" nocase
    $n8 = "p0wny" nocase
    $n9 = "Mini Shell" nocase
    $x1 = "shell_exec(" nocase
    $x2 = "passthru(" nocase
    $x3 = "proc_open(" nocase
    $x4 = "system(" nocase
    $x5 = "popen(" nocase
    $os1 = "php_uname" nocase
    $os2 = "disable_functions" nocase
    $os3 = "uname -a" nocase
    $up1 = "move_uploaded_file(" nocase
    $up2 = "copy($_FILES" nocase
    $check1 = "pathinfo(" nocase
    $check2 = "finfo" nocase
    $check3 = "getimagesize" nocase
    $check4 = "in_array(" nocase
    $check5 = "basename(" nocase
    $check6 = "preg_" nocase
    $check7 = "'size'" nocase
    $check8 = "mime" nocase
    $check9 = "session" nocase
    $check10 = "->"
  condition:
    (uint16(0) == 0x3f3c or $page in (0..512)) and ((any of ($n*) and 2 of ($x*)) or (any of ($up*) and
    ((filesize < 64KB and any of ($os*) and any of ($x*)) or (filesize < 1200 and not any of ($check*)))))
}

rule Assay_Webshell_ASP_Eval {
  meta:
    description = "ASP or ASPX page that evaluates a request parameter"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page1 = "<%@ "
    $page2 = "runat=\"server\"" nocase
    $page3 = "runat=server" nocase
    $direct1 = "eval request" nocase
    $direct2 = "eval(request" nocase
    $direct3 = "execute request" nocase
    $direct4 = "execute(request" nocase
    $from1 = "request(" nocase
    $from2 = "request.form" nocase
    $from3 = "request.querystring" nocase
    $from4 = "request.item" nocase
    $from5 = "request[" nocase
    $from6 = "request.binaryread" nocase
    $run1 = "executeglobal" nocase
    $run2 = "\nexecute " nocase
    $run3 = "\nexecute(" nocase
    $run4 = " execute(" nocase
    $run5 = ":execute" nocase
    $run6 = "\"unsafe\"" nocase
    $run7 = "eval(" nocase
    $run8 = "eval " nocase
    $run9 = "MSScriptControl" nocase
    $load1 = "Assembly.Load(" nocase
    $load2 = "CSharpCodeProvider" nocase
  condition:
    filesize < 200KB and (uint16(0) == 0x253c or $page1 in (0..512) or $page2 in (0..512) or $page3 in (0..512)) and (any of ($direct*)
    or (filesize < 8KB and any of ($from*) and any of ($run*, $load*)))
}

rule Assay_Webshell_ASPX_Command {
  meta:
    description = "ASP or ASPX page that hands a request parameter to a command interpreter and shows the output"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page1 = "<%@ "
    $page2 = "runat=\"server\"" nocase
    $page3 = "runat=server" nocase
    $net1 = "ProcessStartInfo" nocase
    $net2 = "Process.Start" nocase
    $net3 = "new Process" nocase
    $wsh = "CreateObject" nocase
    $cmd1 = "cmd.exe" nocase
    $cmd2 = "cmd /c" nocase
    $cmd3 = "powershell" nocase
    $cmd4 = "%comspec%" nocase
    $cmd5 = "/c " nocase
    $cmd6 = "\"cmd\"" nocase
    $out2 = "StandardOutput" nocase
    $out3 = "StdOut" nocase
    $out4 = "ReadAll" nocase
    $run1 = ".exec" nocase
    $run2 = ".run" nocase
    $from1 = "Request." nocase
    $from2 = "Request[" nocase
    $from3 = "Request(" nocase
    $from4 = "txtArg" nocase
    $from5 = "TextBox" nocase
    $from6 = ".Text)" nocase
  condition:
    filesize < 200KB and (uint16(0) == 0x253c or $page1 in (0..512) or $page2 in (0..512) or $page3 in (0..512)) and any of ($from*)
    and any of ($out*) and ((any of ($net*) and any of ($cmd*)) or ($wsh and any of ($run*)))
}

rule Assay_Webshell_JSP_Command {
  meta:
    description = "JSP page that executes a request parameter"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page1 = "<%@ "
    $page2 = "<jsp:" nocase
    $page3 = "<%!"
    $run1 = "getRuntime" nocase
    $builder = "ProcessBuilder" nocase
    $run2 = "java.lang.Runtime" nocase
    $run3 = "java.lang.Run\"" nocase
    $run4 = "ProcessImpl" nocase
    $call = "exec(" nocase
    $fixed = "exec(\"" nocase
    $fixed2 = "ProcessBuilder(\"" nocase
    $shell1 = "cmd.exe" nocase
    $shell2 = "\"cmd\"" nocase
    $shell3 = "/bin/sh" nocase
    $shell4 = "/bin/bash" nocase
    $shell5 = "\"sh\"" nocase
    $shell6 = "\"bash\"" nocase
    $shell7 = "powershell" nocase
    $script1 = "ScriptEngineManager" nocase
    $script2 = ".eval(" nocase
    $reflect1 = "Class.forName(" nocase
    $reflect2 = "Method(" nocase
    $reflect3 = ".invoke(" nocase
    $from1 = ".getParameter" nocase
    $from2 = ".getHeader" nocase
    $from3 = "request.getInputStream" nocase
    $from4 = "request.getReader" nocase
    $from5 = "getCookies" nocase
    $from6 = "getQueryString" nocase
    $from7 = "${param" nocase
    $write = { 46 69 6c 65 4f 75 74 70 75 74 53 74 72 65 61 6d 28 [0-40] ( 67 65 ) 74 50 61 72 61 6d 65 74 65 72 }
    $write2 = { 46 69 6c 65 57 72 69 74 65 72 28 [0-40] ( 67 65 ) 74 50 61 72 61 6d 65 74 65 72 }
  condition:
    filesize < 64KB and (uint16(0) == 0x253c or $page1 in (0..512) or $page2 in (0..512) or $page3 in (0..512)) and any of ($from*) and ((any of ($run*)
    and (#call > #fixed or any of ($shell*))) or ($builder and (any of ($shell*) or not $fixed2)) or all of ($script*) or all of ($reflect*) or any of ($write*))
}

rule Assay_Webshell_JSP_ClassLoader {
  meta:
    description = "JSP page that decrypts or decodes a class from the request and loads it"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page = "<%@ "
    $a = "ClassLoader" nocase
    $b = "defineClass" nocase
    $c1 = "javax.crypto" nocase
    $c2 = "Cipher" nocase
    $c3 = "Base64" nocase
    $d1 = "request.getReader()" nocase
    $d2 = "request.getParameter(" nocase
    $d3 = "request.getInputStream()" nocase
    $d4 = "request.getHeader(" nocase
  condition:
    filesize < 200KB and (uint16(0) == 0x253c or $page in (0..512)) and $a and $b and any of ($c*) and any of ($d*)
}
