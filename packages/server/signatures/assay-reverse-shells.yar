/*
  Reverse shells: a command interpreter whose input and output go to a network connection. See assay-webshells.yar for the house rules of
  these files. Texts that quote such a line are longer than it, have a heading or a fence, and do not begin as a script.
*/

rule Assay_Script_ReverseShell_Bash {
  meta:
    description = "Shell whose input and output go to a network connection: a script, or nothing else in the file"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $net1 = "/dev/tcp"
    $net2 = "/dev/udp"
    $net3 = "/inet/tcp/0/"
    $inter2 = "sh -i"
    $inter3 = "bash -li"
    $inter4 = "sh <&"
    $inter5 = "sh 0<&"
    $inter7 = "bash -l >"
    $read1 = { ( 77 68 69 6c ) 65 20 72 65 61 64 }  // while read
    $read2 = { ( 72 65 61 64 ) 20 2d 72 }  // read -r
    $read3 = { ( 72 65 ) 61 64 20 6c 69 6e 65 }  // read line
    $read4 = { ( 72 65 61 64 ) 20 63 6d 64 }  // read cmd
    $read5 = "|& getline"
    $eval1 = "eval "
    $eval2 = "2>&3"
    $eval3 = "2>&5"
    $eval4 = "2>&9"
    $eval5 = "2>&1 >&"
    $eval7 = "sh -c \"$"
    $eval8 = "|sh"
    $eval9 = "| getline"
    $wrap1 = "base64 -d|bash"
    $wrap2 = "base64 -d | bash"
    $wrap3 = "base64 --decode | bash"
    $text1 = "```"
    $text2 = "## "
  condition:
    ((any of ($net*) and (any of ($inter*) or (any of ($read*) and any of ($eval*)))) or any of ($wrap*))
    and ((filesize < 800 and not any of ($text*)) or (filesize < 8KB and uint16(0) == 0x2123))
}

rule Assay_Script_ReverseShell_Netcat {
  meta:
    description = "Shell connected to netcat, telnet, socat or openssl: a script, or nothing else in the file"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $first = "nc "
    $net1 = " nc "
    $net8 = "\nnc "
    $net9 = "|nc "
    $net10 = ";nc "
    $net11 = "/nc "
    $net12 = "`nc "
    $net13 = "(nc "
    $net14 = "\"nc "
    $net15 = "'nc "
    $net2 = "ncat"
    $net3 = "netcat"
    $net4 = "nc.exe" nocase
    $net5 = "nc64" nocase
    $net6 = "telnet "
    $net7 = "s_client"
    $relay = "socat"
    $exec1 = "-e /bin/"
    $exec2 = "-e sh"
    $exec3 = "-e bash"
    $exec4 = "-e cmd" nocase
    $exec5 = "-e powershell" nocase
    $exec6 = "-e $"
    $exec7 = "-e \"$"
    $exec8 = "-c /bin/"
    $exec9 = "-c bash"
    $exec10 = "-c sh"
    $exec11 = "--exec"
    $exec12 = "--sh-exec"
    $fifo1 = "mkfifo"
    $fifo2 = "mknod"
    $fifo3 = "coproc"
    $shell1 = "sh -i"
    $shell2 = "-i 2>&1"
    $shell3 = "| /bin/sh"
    $shell4 = "|/bin/sh"
    $shell5 = "| /bin/bash"
    $shell6 = "|/bin/bash"
    $shell7 = "/bin/sh 0<"
    $shell8 = "/bin/sh <"
    $shell9 = "/bin/bash <"
    $shell10 = "/bin/bash 0<"
    $pipe1 = "| /bin/sh |"
    $pipe2 = "|/bin/sh|"
    $pipe3 = "| /bin/bash |"
    $pipe4 = "|/bin/bash|"
    $pipe5 = "| sh |"
    $pipe6 = "| bash |"
    $socat1 = { 65 78 65 63 3a [0-6] 62 69 6e 2f (73 68 | 62 61) }
    $socat2 = { 65 78 65 63 3a [0-1] 73 68 (20 | 22 | 27 | 2c | 0a) }
    $socat3 = { 65 78 65 63 3a [0-1] 62 61 73 68 }
    $socat4 = { 45 58 45 43 3a [0-6] 62 69 6e 2f (73 68 | 62 61) }
    $socat5 = { 45 58 45 43 3a [0-1] 73 68 (20 | 22 | 27 | 2c | 0a) }
    $socat6 = { 45 58 45 43 3a [0-1] 62 61 73 68 }
    $socat7 = { 73 79 73 74 65 6d 3a [0-6] 62 69 6e 2f (73 68 | 62 61) }
    $socat8 = { 73 79 73 74 65 6d 3a [0-1] 73 68 (20 | 22 | 27 | 2c | 0a) }
    $socat9 = { 73 79 73 74 65 6d 3a [0-1] 62 61 73 68 }
    $socat10 = { 53 59 53 54 45 4d 3a [0-6] 62 69 6e 2f (73 68 | 62 61) }
    $socat11 = { 53 59 53 54 45 4d 3a [0-1] 73 68 (20 | 22 | 27 | 2c | 0a) }
    $socat12 = { 53 59 53 54 45 4d 3a [0-1] 62 61 73 68 }
    $socat13 = "exec:cmd" nocase
    $text1 = "```"
    $text2 = "## "
  condition:
    (((any of ($net*) or $first at 0) and (any of ($exec*, $pipe*) or (any of ($fifo*) and any of ($shell*)))) or ($relay and any of ($socat*)))
    and ((filesize < 700 and not any of ($text*)) or (filesize < 8KB and uint16(0) == 0x2123))
}

rule Assay_Script_ReverseShell_Python {
  meta:
    description = "Python that ties a shell to a socket, or runs what a connection sends"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $socket = "socket"
    $connect1 = { ( 63 6f 6e 6e 65 ) 63 74 28 }  // connect(
    $connect2 = "create_connection("
    $connect3 = "open_connection("
    $tie1 = "dup2"
    $spawn = "pty.spawn"
    $tie2 = "stdin=s"
    $tie3 = "stdin=c"
    $tie4 = ".makefile("
    $shell1 = "/bin/sh"
    $shell2 = "/bin/bash"
    $shell3 = "\"sh\""
    $shell4 = "'sh'"
    $shell5 = "cmd.exe"
    $shell6 = "powershell"
    $recv1 = ".recv("
    $recv2 = ".readline("
    $recv3 = ".read("
    $whole1 = "shell=True"
    $whole2 = "shell = True"
    $whole3 = "os.popen("
    $whole4 = { ( 67 65 ) 74 6f 75 74 70 75 74 28 }  // getoutput(
    $send1 = ".send("
    $send2 = ".sendall("
    $send3 = ".write("
    $import = "import"
    $text1 = "```"
    $text2 = "## "
    $listen1 = ".listen("
    $listen2 = { ( 61 ) 72 67 70 61 72 73 65 }  // argparse
    $listen3 = "unittest"
  condition:
    filesize < 6KB and $socket and $import and any of ($connect*) and not any of ($text*, $listen*)
    and ($spawn or (any of ($tie*) and any of ($shell*)) or (any of ($recv*) and any of ($whole*) and any of ($send*)))
}

rule Assay_Script_ReverseShell_Perl_Ruby {
  meta:
    description = "Perl or Ruby that ties a shell to a socket, or runs what a connection sends"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $perl1 = "IO::Socket"
    $perl2 = { ( 75 73 65 20 ) 53 6f 63 6b 65 74 }  // use Socket
    $ruby1 = "TCPSocket"
    $tie1 = "fdopen"
    $tie2 = ">&"
    $tie3 = "<&"
    $tie4 = "dup2"
    $tie5 = "reopen"
    $in1 = "STDIN"
    $in2 = "STDOUT"
    $in3 = "<&%d"
    $in4 = "<&#{"
    $in5 = "$stdin"
    $shell1 = "/bin/sh"
    $shell2 = "/bin/bash"
    $shell3 = "sh -i"
    $shell4 = "cmd.exe"
    $shell5 = "system$_"
    $shell6 = "system $_"
    $shell7 = "exec{"
    $out1 = "`$"
    $out2 = "qx"
    $out3 = "IO.popen("
    $out4 = "Open3."
    $out5 = "`#{"
    $read1 = "<$"
    $read2 = ".gets"
    $read3 = { ( 67 ) 65 74 6c 69 6e 65 }  // getline
    $read4 = "recv("
    $text1 = "```"
    $text2 = "## "
    $listen1 = "Listen"
    $listen2 = "TCPServer"
  condition:
    filesize < 4KB and any of ($perl*, $ruby*) and not any of ($text*, $listen*)
    and ((any of ($tie*) and any of ($in*) and any of ($shell*)) or (any of ($out*) and any of ($read*)))
}

rule Assay_Script_ReverseShell_PHP {
  meta:
    description = "PHP that ties a shell to a socket"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $page1 = "<?php" nocase
    $page2 = "php -r" nocase
    $open1 = "fsockopen(" nocase
    $open2 = "stream_socket_client(" nocase
    $open3 = "socket_connect(" nocase
    $run1 = "proc_open(" nocase
    $run3 = "exec(" nocase
    $run4 = "popen(" nocase
    $run5 = "system(" nocase
    $run6 = "passthru(" nocase
    $run7 = "`$"
    $shell1 = "/bin/sh"
    $shell2 = "/bin/bash"
    $shell3 = "sh -i"
    $shell4 = "cmd.exe" nocase
    $shell5 = "<&3"
    $loop1 = "fgets(" nocase
    $loop2 = "fread(" nocase
    $loop3 = "socket_read(" nocase
    $back1 = "fwrite(" nocase
    $back2 = "fputs(" nocase
    $back3 = "socket_write(" nocase
    $exec1 = "shell_exec($" nocase
    $exec2 = " exec($" nocase
    $exec3 = "popen($" nocase
    $class = { ( 6e 61 6d ) 65 73 70 61 63 65 20 }  // "namespace "
  condition:
    filesize < 16KB and (uint16(0) == 0x3f3c or $page1 in (0..512) or ($page2 in (0..256) and filesize < 800)) and any of ($open*)
    and not $class and ((any of ($run*) and any of ($shell*)) or (any of ($loop*) and any of ($back*) and any of ($exec*)))
}

rule Assay_Script_ReverseShell_PowerShell {
  meta:
    description = "PowerShell that runs what a connection sends and answers with the output"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $net1 = "Sockets.TCPClient" nocase
    $net2 = "Sockets.Socket" nocase
    $net3 = { 53 6f 63 6b 65 74 73 [1-8] 43 6c 69 65 6e 74 }
    $net4 = "ClientWebSocket" nocase
    $stream1 = "GetStream" nocase
    $stream2 = "NetworkStream" nocase
    $stream3 = "Receive" nocase
    $run1 = "iex " nocase
    $run2 = "iex(" nocase
    $run3 = "Invoke-Expression" nocase
    $run4 = "ScriptBlock]::Create" nocase
    $run5 = "cmd.exe" nocase
    $run6 = "cmd /c" nocase
    $run7 = "powershell.exe" nocase
    $run8 = "Diagnostics.Process" nocase
    $run9 = "('ie'+'x')" nocase
    $back1 = ".Write(" nocase
    $back2 = ".Flush()" nocase
    $back3 = ".WriteLine(" nocase
    $back4 = ".Send" nocase
    $text1 = "```"
    $text2 = "## "
  condition:
    filesize < 8KB and any of ($net*) and any of ($stream*) and any of ($run*) and any of ($back*) and not any of ($text*)
}

rule Assay_Script_ReverseShell_Program {
  meta:
    description = "Short source for Node.js, Java, Go, Lua or C that ties a shell to a socket"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $node1 = "child_process"
    $node2 = ".connect("
    $node3 = ".pipe("
    $go1 = "net.Dial("
    $go2 = "exec.Command("
    $java1 = "new Socket("
    $java2 = { ( 67 65 ) 74 4f 75 74 70 75 74 53 74 72 65 61 6d 28 }  // getOutputStream(
    $java3 = { ( 67 65 74 ) 49 6e 70 75 74 53 74 72 65 61 6d 28 }  // getInputStream(
    $process1 = "exec("
    $process2 = "ProcessBuilder("
    $lua1 = "require('socket')"
    $lua2 = "require(\"socket\")"
    $open = "io.popen("
    $c_1 = { ( 73 69 ) 6e 5f 61 64 64 72 }  // sin_addr
    $c_2 = "dup2("
    $connect = { ( 63 6f 6e 6e 65 ) 63 74 28 }  // connect(
    $shell1 = "/bin/sh"
    $shell2 = "/bin/bash"
    $shell3 = "cmd.exe" nocase
    $shell4 = "powershell" nocase
    $text1 = "```"
    $text2 = "## "
  condition:
    filesize < 4KB and not any of ($text*) and ((any of ($shell*) and (all of ($node*) or all of ($go*) or ($connect and all of ($c_*))
    or (all of ($java*) and any of ($process*)))) or (any of ($lua*) and $connect and $open))
}
