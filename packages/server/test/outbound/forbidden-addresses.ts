/** Hosts as somebody may write them who wants our own network called. Every one leads to an address that is not public. */
export const forbiddenHosts: readonly string[] = [
  // Loopback: plain, short, decimal, octal, hex, mixed, with a dot at the end.
  ...['127.0.0.1', '127.1', '127.0.1', '127.0.0.254', '127.255.255.254', '2130706433', '017700000001', '0x7f000001'],
  ...['0x7F000001', '0177.0.0.1', '0177.1', '0x7f.0.0.1', '0x7f.1', '0x7f.0x0.0x0.0x1', '00000177.0.0.01', '127.0x1'],
  ...['127.0.0.1.', '0x7f000001.', '127.000.000.001'],
  // "This host", which the kernel connects to loopback.
  ...['0', '0.0.0.0', '00', '0x0', '0.0.0.0.', '0.1.2.3'],
  // What a URL parser repairs: escapes, wide digits, circled digits, ideographic full stops.
  ...['%31%32%37.0.0.1', '127%2e0%2e0%2e1', '%6c%6f%63alhost', '１２７.0.0.1', '127。0。0。1', '127．0．0．1'],
  ...['①②⑦.0.0.1', '0ｘ7f.1', 'ｌｏｃａｌｈｏｓｔ', 'LOCALHOST'],
  // Names that mean loopback without any name server.
  ...['localhost', 'localhost.', 'a.localhost', 'a.b.LocalHost', 'a.localhost.'],
  // Private.
  ...['10.0.0.1', '10.1', '167772161', '0xa000001', '012.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255'],
  ...['2886729729', '192.168.0.1', '192.168.1', '3232235521', '0xc0a80001', '0300.0250.0.1'],
  // Shared by carriers, link local, and where clouds keep their secrets.
  ...['100.64.0.1', '100.127.255.255', '169.254.0.1', '169.254.169.254', '2852039166', '0xa9fea9fe', '0xA9.0xFE.43518'],
  ...['0251.0376.0251.0376', '169.254.43518', '169.16689662', '169.254.170.2', '100.100.100.200', '168.63.129.16'],
  '192.0.0.192',
  // Protocol assignments, documentation, the 6to4 relay, AS112, AMT, benchmarks, multicast, reserved, broadcast.
  ...['192.0.0.1', '192.0.2.1', '198.51.100.7', '203.0.113.9', '192.88.99.1', '192.31.196.1', '192.52.193.1'],
  ...['192.175.48.1', '198.18.0.1', '198.19.255.255', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['4294967295', '0xffffffff', '037777777777'],
  // IPv6: unspecified, loopback, unique local, link local, site local, multicast, discard, documentation, and the unassigned.
  ...['[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[fc00::1]', '[fd00:ec2::254]', '[fe80::1]', '[febf::1]'],
  ...['[fec0::1]', '[ff02::1]', '[ff0e::1]', '[100::1]', '[2001:db8::1]', '[3fff::1]', '[2001:2::1]', '[2001:10::1]'],
  ...['[2001:20::1]', '[2620:4f:8000::1]', '[5f00::1]', '[4000::1]', '[e000::1]', '[200::1]'],
  // IPv4 within IPv6: mapped, compatible, translated, NAT64 (both prefixes), 6to4, Teredo.
  ...['[::ffff:127.0.0.1]', '[::FFFF:7f00:1]', '[0:0:0:0:0:ffff:a9fe:a9fe]', '[::ffff:10.0.0.1]', '[::ffff:8.8.8.8]'],
  ...['[::ffff:0:127.0.0.1]', '[::127.0.0.1]', '[::7f00:1]', '[64:ff9b::127.0.0.1]', '[64:ff9b::a9fe:a9fe]'],
  ...[
    '[64:ff9b:1::10.0.0.1]',
    '[2002:7f00:1::]',
    '[2002:a9fe:a9fe::1]',
    '[2001:0:7f00:1::]',
    '[2001::8000:0:80ff:fffe]',
  ],
]

/** Not hosts at all, or more than a host. `PORT` is where a canary listens. */
export const forbiddenUrls: readonly string[] = [
  ...['http://[fe80::1%25lo]:PORT/', 'http://[fe80::1%lo]:PORT/', 'http://[::1%25lo]:PORT/', 'http://[::1]x:PORT/'],
  ...['http://user@127.0.0.1:PORT/', 'http://user:pass@127.0.0.2:PORT/', 'http://127.0.0.2@127.0.0.1:PORT/'],
  ...['http://127.0.0.2:PORT@127.0.0.1:PORT/', 'http://@127.0.0.1:PORT/', 'http://127.0.0.1:PORT#@127.0.0.2/'],
  ...[
    'http://127.0.0.1:PORT\\@127.0.0.2/',
    'http:\\\\127.0.0.1:PORT/',
    'http:127.0.0.1:PORT/',
    'http:/127.0.0.1:PORT/',
  ],
  ...['http:///127.0.0.1:PORT/', '//127.0.0.1:PORT/', ' http://127.0.0.1:PORT/', 'ht\ntp://127.0.0.1:PORT/'],
  ...['http://127.0.0.1:PORT/\u0000', 'http://127.0.0\t.1:PORT/', 'http://127.0.0.1%00.test:PORT/', 'http://:PORT/'],
  ...['http://.:PORT/', 'http://256.256.256.256:PORT/', 'http://127.0.0.0x100:PORT/', 'http://1.2.3.4.5:PORT/'],
  ...['ftp://127.0.0.1:PORT/', 'file:///etc/passwd', 'file://127.0.0.1/etc/passwd', 'data:text/plain,hello'],
  ...['gopher://127.0.0.1:PORT/_x', 'ws://127.0.0.1:PORT/', 'javascript:1', 'blob:http://127.0.0.1:PORT/x', 'unix:/x'],
  ...['http://127.0.0.2:22/', 'http://127.0.0.2:25/', 'http://127.0.0.2:0/', 'http://127.0.0.2:6667/', 'http://'],
  ...['', `http://127.0.0.2:PORT/${'a'.repeat(2_048)}`],
]
