import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { GuestUrl } from './url.ts';

const MEMBERS = [
  'href',
  'origin',
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const;
type Parts = Record<(typeof MEMBERS)[number], unknown>;

const partsOf = (url: Parts): unknown[] => MEMBERS.map((member) => url[member]);

/** Host names that need IDNA are refused on purpose. */
const isUnsupported = (error: unknown): boolean =>
  error instanceof TypeError && error.message.includes('ASCII host names');

function nodeUrl(input: string, base?: string): URL | undefined {
  return URL.parse(input, base) ?? undefined;
}

function guestUrl(input: string, base?: string): GuestUrl | 'unsupported' | undefined {
  try {
    return new GuestUrl(input, base);
  } catch (error) {
    return isUnsupported(error) ? 'unsupported' : undefined;
  }
}

function assertSameUrl(input: string, base?: string): void {
  const actual = guestUrl(input, base);
  if (actual === 'unsupported') return;
  const expected = nodeUrl(input, base);
  const label = JSON.stringify([input, base]);
  assert.deepEqual(actual && partsOf(actual), expected && partsOf(expected), label);
  if (actual && expected) assert.deepEqual([...actual.searchParams], [...expected.searchParams], label);
}

const BASES = [
  'http://example.org/foo/bar?q=1#f',
  'https://u:p@h.test:8080/a/b/c',
  'file:///C:/a/b',
  'file://server/share/x',
  'file:///tmp/x?y',
  'mailto:a@b.test',
  'app://host/a/b?c',
  'app:/a/b',
  'ws://x.test',
];

const INPUTS = [
  '',
  '.',
  '..',
  '../..',
  './x',
  'x/./y/../z',
  '/',
  '//',
  '///',
  '////x',
  '/x',
  '//h/x',
  '\\x',
  '\\\\h\\x',
  '?',
  '?a=b',
  '#',
  '#f',
  ';x',
  ':',
  '::',
  'http:',
  'http:/',
  'http://',
  'http:x',
  'http:/x',
  'http:///x',
  'http:\\\\x\\y',
  'https:x',
  'HTTP://EXAMPLE.com/%7Efoo/%2e%2E/bar',
  'http://a:b@c:29/d',
  'http://a:@c/',
  'http://:b@c/',
  'http://@c/',
  'http://a@b@c/',
  'http://a:b:c@d/',
  'http://@/',
  'http://a@:80/',
  'http://:80/',
  'http://h:80/',
  'https://h:443/',
  'http://h:443/',
  'http://h:0/',
  'http://h:65535/',
  'http://h:65536/',
  'http://h:/',
  'http://h:x/',
  'http://h: 80/',
  'http://h:080/',
  'http://1/',
  'http://1.2/',
  'http://1.2.3/',
  'http://1.2.3.4/',
  'http://1.2.3.4.5/',
  'http://256.1/',
  'http://0x7f.1/',
  'http://0300.0250.1/',
  'http://4294967295/',
  'http://4294967296/',
  'http://1.2.3.256/',
  'http://1..2/',
  'http://1.2.3.4./',
  'http://0x/',
  'http://09/',
  'http://a.1/',
  'http://a.0x1/',
  'http://1e2/',
  'http://%31%32/',
  'http://[::1]/',
  'http://[1::]/',
  'http://[::]/',
  'http://[1:2:3:4:5:6:7:8]/',
  'http://[1:2:3:4:5:6:7::]/',
  'http://[1:0:0:2:0:0:0:3]/',
  'http://[::1.2.3.4]/',
  'http://[::ffff:1.2.3.04]/',
  'http://[1:2:3]/',
  'http://[1::2::3]/',
  'http://[:1]/',
  'http://[1:2:3:4:5:6:7:8:9]/',
  'http://[::1/',
  'http://[g::]/',
  'http://[::1]:8080/x',
  'http://[::1]x/',
  'http://[1:2:3:4:5:6:1.2.3.4]/',
  'http://[::1.2.3.4:5]/',
  'http://[ABCD::Ef01]/',
  'http://[1:2:3:4:5:6:7:]/',
  'http://[::%eth0]/',
  'http://a b/',
  'http://a%20b/',
  'http://a%2fb/',
  'http://a<b/',
  'http://a^b/',
  'http://a|b/',
  'http://a%b/',
  'http://a"b/',
  'http://a{b}`/',
  'http://a_b-c/',
  'http://a..b/',
  'http://./',
  'http://a./',
  'http://h/a b"c<d>e`f{g}h|i^j\\k',
  'http://h/%zz%4',
  'http://h/?a b"c<d>e`f\'g{h}|#a b"c<d>e`f{g}',
  'http://h/é?ü#ß',
  'http://h/\ud800',
  'http://h/\u{1f600}',
  "app://h/?a'b",
  'file:',
  'file:/',
  'file://',
  'file:///',
  'file:///C|/x',
  'file:C:/x',
  'file:c:\\x',
  'file://C:/x',
  'file://localhost/x',
  'file://h/x',
  'file:///C:/../..',
  'file:../../../x',
  'file:///..',
  'file:?q',
  'file:#f',
  'C|/x',
  '/C|/x',
  'file:////x',
  'file://h:80/',
  'app:',
  'app:x',
  'app:/x',
  'app://',
  'app:///x',
  'app://H/x',
  'app://h%20/',
  'app://a b/',
  'app://u:p@h:1/x',
  'app://:80/',
  'app:/..//x',
  'app:x y?z',
  'app:x  #z',
  'app:/.//p',
  'app://1.2.300/',
  'app://[::1]/',
  'app://é/',
  'app:\\\\x',
  'app:../x',
  'mailto:a@b',
  'data:text/plain,a b#c',
  'javascript:x(1)',
  'blob:https://x.test:443/id',
  'blob:file:///x',
  'blob:x',
  'a1+-.:x',
  '1a:x',
  'a_b:x',
  ' \t http://h/ \n',
  'ht\ntp://h\t/x\r',
  '\u0000http://h/\u001f',
  'ftp://h:21/x',
  'wss://h:443',
  'ws://h',
  'http://u\u00e9:p\u00e9@h/',
  "http://a'b;c=d|e[f]@h/",
];

describe('URL of the guest', () => {
  it('URL parses like Node, alone and against a base', () => {
    for (const input of INPUTS) {
      assertSameUrl(input);
      for (const base of BASES) assertSameUrl(input, base);
    }
  });

  it('URL parses any composition of delimiters and words like Node', () => {
    const piece = fc.constantFrom(
      'http:',
      'file:',
      'app:',
      '/',
      '\\',
      '//',
      ':',
      '@',
      '?',
      '#',
      '[',
      ']',
      '.',
      '..',
      '%2e',
      '%',
      'a',
      'B',
      '1',
      '0x1',
      ':80',
      'C:',
      '|',
      ' ',
      '=',
      '&',
      '+',
      'é',
      '[::1]',
      '^',
      '{',
      '\t',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }),
        fc.option(fc.constantFrom(...BASES), { nil: undefined }),
        (pieces, base) => assertSameUrl(pieces.join(''), base),
      ),
      { numRuns: 5_000 },
    );
  });

  it('URL parses any text like Node', () => {
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), (text) => assertSameUrl(text)),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => assertSameUrl(`http://h.test/${text}`)),
      { numRuns: 500 },
    );
  });

  it('a host name that needs IDNA throws a TypeError that says so, and is never parsed', () => {
    for (const input of [
      'http://größe.test/',
      'https://xn--nxasmq6b.test/',
      'http://a.XN--x/',
      'http://%C3%A9/',
      'http://Ａ/',
    ]) {
      assert.throws(() => new GuestUrl(input), /only ASCII host names/, input);
      assert.throws(() => GuestUrl.canParse(input), /only ASCII host names/, input);
    }
    assert.deepEqual(
      [GuestUrl.canParse('http://a/'), GuestUrl.canParse('x'), GuestUrl.parse('x')],
      [true, false, null],
    );
  });

  const VALUES: Partial<Record<(typeof MEMBERS)[number], readonly string[]>> = {
    protocol: ['https', 'http:', 'ftp:x', 'app:', 'file', '1', '', 'ws'],
    username: ['u', '', 'a:b@c', 'é'],
    password: ['p', '', 'a:b@c'],
    host: ['x.test', 'x.test:81', 'x:', ':80', '', '[::1]:82', 'a b', 'x/y', 'x?y', 'x:99999', '1.2', 'x:8y', 'u@x'],
    hostname: ['x.test', 'x:81', '', '[::1]', 'a b', 'x/y', '0x7f.1', '[::1]:1'],
    port: ['81', '', '80', '443', '8a', 'a', '65536', ' 1', '0'],
    pathname: ['/a', 'a b', '', '../x', '?#', '\\x', '//x', '/%2e%2e/y'],
    search: ['?a=1', 'b', '', '?', "a'b", '??', '#'],
    hash: ['#a', 'b', '', '#', ' "', '##'],
    href: ['https://new.test/x?y#z'],
  };
  for (const [member, values] of Object.entries(VALUES)) {
    it(`setting ${member} changes a URL like Node`, () => {
      for (const start of ['http://u:p@h.test:8080/a?b=1#c', 'https://h/', ...BASES]) {
        for (const value of values) {
          const [actual, expected] = [new GuestUrl(start), new URL(start)];
          (actual as unknown as Record<string, unknown>)[member] = value;
          (expected as unknown as Record<string, unknown>)[member] = value;
          assert.deepEqual(partsOf(actual), partsOf(expected), JSON.stringify([start, member, value]));
          assert.deepEqual([...actual.searchParams], [...expected.searchParams]);
        }
      }
    });
  }

  it('searchParams changes its URL', () => {
    const [actual, expected] = [new GuestUrl('http://h/?a=1&b=2'), new URL('http://h/?a=1&b=2')];
    for (const url of [actual, expected]) {
      url.searchParams.append('c d', 'é&=+');
      url.searchParams.delete('a');
    }
    assert.equal(actual.href, expected.href);
    for (const url of [actual, expected]) for (const name of ['b', 'c d']) url.searchParams.delete(name);
    assert.equal(actual.href, expected.href);
  });
});
