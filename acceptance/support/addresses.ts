const toWords = (text: string) => text.split(/\s+/)

/** Hosts with addresses that are not public, in every spelling that a URL parser or a resolver accepts. */
export const notPublicHosts: readonly string[] = Object.values({
  loopback: `127.0.0.1 127.1 127.0.1 127.0.0.254 127.255.255.254 2130706433 017700000001 0x7f000001 0x7F000001 0177.0.0.1
    0177.1 0x7f.0.0.1 0x7f.1 0x7f.0x0.0x0.0x1 0x7F.0x0.0x0.0x1 00000177.0.0.01 127.0x1 127.0.0.1. 0x7f000001.
    127.000.000.001`,
  'this host, which the kernel connects to loopback': '0 0.0.0.0 00 0x0 0.0.0.0. 0.1.2.3',
  'escapes, wide digits, circled digits and ideographic full stops': `%31%32%37.0.0.1 127%2e0%2e0%2e1 １２７.0.0.1
    127。0。0。1 127．0．0．1 ①②⑦.0.0.1 0ｘ7f.1`,
  private: `10.0.0.1 10.1 167772161 0xa000001 012.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 2886729729 192.168.0.1
    192.168.1 3232235521 0xc0a80001 0300.0250.0.1`,
  'carrier-grade NAT, link local and metadata services of clouds': `100.64.0.1 100.127.255.255 169.254.0.1 169.254.169.254
    2852039166 0xa9fea9fe 0xA9.0xFE.43518 0251.0376.0251.0376 169.254.43518 169.16689662 169.254.170.2 100.100.100.200
    168.63.129.16 192.0.0.192`,
  'protocol assignments, documentation, 6to4 relay, AS112, AMT and benchmarks': `192.0.0.1 192.0.2.1 198.51.100.7
    203.0.113.9 192.88.99.1 192.31.196.1 192.52.193.1 192.175.48.1 198.18.0.1 198.19.255.255`,
  'multicast, reserved and broadcast': `224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 4294967295 0xffffffff
    037777777777`,
  'IPv6: unspecified, loopback, local, multicast, discard, documentation and unassigned': `[::] [::1] [0:0:0:0:0:0:0:1]
    [0000::0001] [fc00::1] [fd00:ec2::254] [fdff::1] [fe80::1] [febf::1] [fec0::1] [ff02::1] [ff0e::1] [100::1]
    [2001:db8::1] [3fff::1] [2001:2::1] [2001:10::1] [2001:20::1] [2620:4f:8000::1] [5f00::1] [4000::1] [e000::1] [200::1]`,
  'IPv4 in IPv6: mapped, compatible, translated, NAT64, 6to4 and Teredo': `[::ffff:127.0.0.1] [::ffff:7f00:1]
    [::FFFF:7f00:1] [0:0:0:0:0:ffff:a9fe:a9fe] [::ffff:10.0.0.1] [::FFFF:10.0.0.1] [::ffff:192.168.0.1] [::ffff:8.8.8.8]
    [::ffff:0:127.0.0.1] [::127.0.0.1] [::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::10.0.0.1]
    [2002:7f00:1::] [2002:a9fe:a9fe::1] [2002:c0a8:1::1] [2001:0:7f00:1::] [2001::8000:0:80ff:fffe]`,
}).flatMap(toWords)

/** Addresses just outside the forbidden networks, and harmless ones in unusual spellings. */
export const publicHosts: readonly string[] =
  toWords(`9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255 169.255.0.0
  172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 8.8.8.8 134744072
  0x08080808 1.1 168.63.129.17 8.8.8.8. [2606:4700::1111] [2001:4860:4860::8888] [2001:200::1] [2001:db7::1] [2003::1]
  [3ffe::1]`)
