/*
  Web shells: pages which run what the request tells them to.

  Written for Assay, loaded by clamd (its subset of YARA: no modules, no external variables, strings of two bytes or more, 64 strings a
  rule), by libyara 4 and by YARA-X. House rules for every .yar file of this folder:
  - A rule asks for a combination that only an attack needs, and for the place where it is one: the start of a page, the header of a
    program, a file too short to be a text about it. Documents that quote an attack are not findings.
  - No regular expressions and no strings below four bytes: clamd runs expressions over the whole file, and short strings match
    everywhere.
  - The rules do not match their own source: an anchor at the start of the file, a limit of size below that of the source, or one part
    written in hexadecimal. No HTML tag stands here as text, or clamd takes the file for a page and cuts it into pieces.
*/

rule Assay_Webshell_PHP_Eval {
  meta:
    description = "PHP page that evaluates or executes a request parameter"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<?php" nocase
    $e1 = "eval($_POST[" nocase
    $e2 = "eval($_GET[" nocase
    $e3 = "eval($_REQUEST[" nocase
    $e4 = "eval($_COOKIE[" nocase
    $e5 = "eval(base64_decode($_" nocase
    $e6 = "eval(stripslashes($_" nocase
    $e7 = "assert($_POST[" nocase
    $e8 = "assert($_GET[" nocase
    $e9 = "assert($_REQUEST[" nocase
    $s1 = "system($_POST[" nocase
    $s2 = "system($_GET[" nocase
    $s3 = "system($_REQUEST[" nocase
    $s4 = "shell_exec($_POST[" nocase
    $s5 = "shell_exec($_GET[" nocase
    $s6 = "shell_exec($_REQUEST[" nocase
    $s7 = "passthru($_POST[" nocase
    $s8 = "passthru($_GET[" nocase
    $s9 = "passthru($_REQUEST[" nocase
    $s10 = "popen($_POST[" nocase
    $s11 = "popen($_GET[" nocase
    $s12 = "popen($_REQUEST[" nocase
  condition:
    filesize < 200KB and (uint16(0) == 0x3f3c or $page in (0..512)) and (any of ($e*) or any of ($s*))
}

rule Assay_Webshell_PHP_Packed {
  meta:
    description = "PHP page that evaluates compressed or rotated code"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<?php" nocase
    $z1 = "eval(gzinflate(base64_decode(" nocase
    $z2 = "eval(gzuncompress(base64_decode(" nocase
    $z3 = "eval(gzinflate(str_rot13(base64_decode(" nocase
    $z4 = "eval(str_rot13(gzinflate(base64_decode(" nocase
    $z5 = "eval(gzdecode(base64_decode(" nocase
    $z6 = "eval(base64_decode(str_rot13(" nocase
    $z7 = "eval(\"?>\".gzinflate(base64_decode(" nocase
    $z8 = "eval('?>'.gzinflate(base64_decode(" nocase
    $z9 = "eval(\"?>\".base64_decode(" nocase
    $z10 = "eval(strrev(base64_decode(" nocase
    $z11 = "assert(gzinflate(base64_decode(" nocase
  condition:
    (uint16(0) == 0x3f3c or $page in (0..512)) and any of ($z*)
}

rule Assay_Webshell_PHP_Family {
  meta:
    description = "PHP page with the name of a well-known web shell and a call that runs commands"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<?php" nocase
    $n1 = "'FilesMan'"
    $n2 = "c99shell" nocase
    $n3 = "r57shell" nocase
    $n4 = "b374k" nocase
    $n5 = "WSO_VERSION"
    $n6 = "IndoXploit" nocase
    $n7 = "AnonymousFox" nocase
    $x1 = "shell_exec(" nocase
    $x2 = "passthru(" nocase
    $x3 = "proc_open(" nocase
    $x4 = "system(" nocase
    $x5 = "popen(" nocase
  condition:
    (uint16(0) == 0x3f3c or $page in (0..512)) and any of ($n*) and 2 of ($x*)
}

rule Assay_Webshell_ASP_Eval {
  meta:
    description = "ASP or ASPX page that evaluates a request parameter"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<%@ "
    $e1 = "eval request(" nocase
    $e2 = "eval(request(" nocase
    $e3 = "execute request(" nocase
    $e4 = "execute(request(" nocase
    $e5 = "executeglobal request(" nocase
    $e6 = "executeglobal(request(" nocase
    $e7 = "eval(Request.Item[" nocase
    $e8 = "eval(Request.Form[" nocase
    $e9 = "eval(Request.QueryString[" nocase
  condition:
    filesize < 200KB and (uint16(0) == 0x253c or $page in (0..512)) and any of ($e*)
}

rule Assay_Webshell_ASPX_Command {
  meta:
    description = "ASPX page that hands a request parameter to the command interpreter and shows the output"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<%@ Page" nocase
    $a = "ProcessStartInfo" nocase
    $b = "cmd.exe" nocase
    $c = "RedirectStandardOutput" nocase
    $r1 = "Request.Form" nocase
    $r2 = "Request.QueryString" nocase
    $r3 = "Request[" nocase
    $r4 = "txtArg" nocase
  condition:
    filesize < 200KB and $page in (0..512) and $a and $b and $c and any of ($r*)
}

rule Assay_Webshell_JSP_Command {
  meta:
    description = "JSP page that executes a request parameter"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<%@ "
    $direct = "getRuntime().exec(request.getParameter("
    $exec1 = "getRuntime().exec("
    $exec2 = "new ProcessBuilder("
    $arg1 = "request.getParameter(\"cmd\")"
    $arg2 = "request.getParameter(\"command\")"
    $arg3 = "request.getParameter(\"exec\")"
    $out = "getInputStream()"
  condition:
    filesize < 200KB and (uint16(0) == 0x253c or $page in (0..512)) and ($direct or (any of ($exec*) and any of ($arg*) and $out))
}

rule Assay_Webshell_JSP_ClassLoader {
  meta:
    description = "JSP page that decrypts a class from the request and loads it"
    author = "Assay"
    date = "2026-11-15"
  strings:
    $page = "<%@ "
    $a = "extends ClassLoader"
    $b = "defineClass("
    $c = "javax.crypto"
    $d1 = "request.getReader().readLine()"
    $d2 = "request.getParameter("
    $d3 = "request.getInputStream()"
  condition:
    filesize < 200KB and (uint16(0) == 0x253c or $page in (0..512)) and $a and $b and $c and any of ($d*)
}
