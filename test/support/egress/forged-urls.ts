/** URLs that must not be reached by an agent that may reach every host below `example.com`, generated from notations and tricks. */

const ADDRESSES: readonly (readonly [number, number, number, number])[] = [
  [169, 254, 169, 254],
  [127, 0, 0, 1],
  [10, 96, 0, 1],
];

/** One address inside, as the parsers of different systems read it. */
function notations([a, b, c, d]: readonly [number, number, number, number]): string[] {
  const value = ((a * 256 + b) * 256 + c) * 256 + d;
  const bytes = [a, b, c, d];
  const dotted = bytes.join('.');
  const hex = (byte: number): string => byte.toString(16);
  const [high, low] = [hex(a * 256 + b), hex(c * 256 + d)];
  return [
    dotted,
    String(value),
    `0x${hex(value)}`,
    `0${value.toString(8)}`,
    bytes.map((byte) => `0x${hex(byte)}`).join('.'),
    bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
    `${a}.${value % 16_777_216}`,
    `[::ffff:${dotted}]`,
    `[::ffff:${high}:${low}]`,
    `[::${high}:${low}]`,
    `[64:ff9b::${high}:${low}]`,
    `[2002:${high}:${low}::1]`,
  ];
}

const IPV6 = ['[::]', '[::1]', '[fd00:ec2::254]', '[fe80::1]', '[fe80::1%25eth0]', '[ff02::1]'];

const NAMES = [
  'localhost',
  'metadata.google.internal',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  'temper-nats.temper-system.svc',
  'example.com',
  'api.other.example.com',
  'evil-example.com',
  'api.example.com.evil.test',
  'api.example.org',
];

/** Texts that two parsers read as different hosts, and schemes other than https. */
const TRICKS = [
  'https://user@api.example.com/ok',
  'https://api.example.com@169.254.169.254/',
  'https://api.example.com\\@169.254.169.254/',
  'https://169.254.169.254#@api.example.com/',
  'https://169.254.169.254/?@api.example.com/',
  'https://api.example.com./ok',
  'https://api%2eexample.com/ok',
  'https://api.example.com%00.evil.test/',
  'https://api。example。com/ok',
  'https://аpi.example.com/ok',
  'https://[api.example.com]/ok',
  'https://api.exa\tmple.com/ok',
  'https://api.example.com\r\nHost: evil.test/',
  'https:api.example.com/ok',
  '//api.example.com/ok',
  'http://api.example.com/ok',
  'ftp://api.example.com/ok',
  'ws://api.example.com/ok',
  'file:///etc/passwd',
  'data:text/plain,ok',
];

const PORTS = [0, 22, 80, 4_222, 6_443, 8_443, 10_250, 65_536];

export const FORGED_URLS: readonly string[] = [
  ...[...ADDRESSES.flatMap(notations), ...IPV6, ...NAMES].map((host) => `https://${host}/`),
  ...TRICKS,
  ...PORTS.map((port) => `https://api.example.com:${port}/ok`),
];

/** Where a host that may be reached redirects to. */
export const FORGED_REDIRECTS: readonly string[] = [
  'https://169.254.169.254/latest/meta-data/',
  'http://169.254.169.254/latest/meta-data/',
  'http://api.example.com/ok',
  'https://api.example.com:8443/ok',
  'https://api.example.org/',
  'https://[::ffff:169.254.169.254]/',
  'https://user@api.example.com/ok',
  'https://inside-6.example.com/',
  'file:///etc/passwd',
];
