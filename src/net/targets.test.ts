import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { type TargetRules, validateTarget } from './targets.ts';

const RULES: TargetRules = {
  hostDenialReason: (host) =>
    host === 'api.example.com' || host.endsWith('.allowed.test') ? undefined : 'it is not listed',
};
const ANY_HOST: TargetRules = { allowHttp: true, hostDenialReason: () => undefined };

/** URLs that must be rejected, even with an allowlist of all hosts. */
const NEVER = [
  // Internal IP addresses.
  'http://127.0.0.1/',
  'https://127.0.0.1/',
  'https://10.0.0.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://100.100.100.200/',
  'https://192.168.1.1/',
  'https://172.16.0.1/',
  'https://0.0.0.0/',
  'https://[::1]/',
  'https://[::]/',
  'https://[fd00:ec2::254]/',
  'https://[fe80::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:a9fe:a9fe]/',
  'https://[64:ff9b::a9fe:a9fe]/',
  'https://[64:ff9b::169.254.169.254]/',
  'https://[2002:a9fe:a9fe::]/',
  'https://[::127.0.0.1]/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  // Internal IP addresses in misleading notations.
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.1/',
  'https://0177.0.0.1/',
  'https://017700000001/',
  'https://127.1/',
  'https://127.0.1/',
  'https://0/',
  'https://2852039166/',
  'https://0xa9fea9fe/',
  'https://0xA9.0xFE.0xA9.0xFE/',
  'https://134744072/',
  'https://8.8.2056/',
  'https://010.8.8.8/',
  // Internal host names.
  'https://localhost/',
  'https://LOCALHOST/',
  'https://a.localhost/',
  'https://metadata.google.internal/',
  'https://metadata/',
  'https://kubernetes/',
  'https://kubernetes.default.svc/',
  'https://x.y.svc.cluster.local/',
  'https://localhost./',
  'https://api.example.com./',
  'https://intranet/',
  // Userinfo, fragments and backslashes, from which two parsers read different hosts.
  'https://user@api.example.com/',
  'https://user:x@169.254.169.254/',
  'https://api.example.com@evil.test/',
  'https://api.example.com\\@evil.test/',
  'https:\\\\evil.test/',
  'https://evil.test\\.api.example.com/',
  'https://api.example.com%2f@evil.test/',
  'https://evil%2etest/',
  'https://[example.com]/',
  'https://[evil.test]:443/',
  // Characters that parsers fold or drop, and line breaks.
  'https://api。example。com/',
  'https://ⓔxample.com/',
  'https://аpi.example.com/',
  'https://api.example.com\r\nHost: evil.test/',
  'https://api.exa\tmple.com/',
  ' https://api.example.com/',
  'https://api.example.com/a b',
  'https://exam\u00adple.com/',
  'https://example.com\u2024evil.test/',
  'https://\u202eapi.example.com/',
  // Schemes, ports and shapes.
  'ftp://api.example.com/',
  'file:///etc/passwd',
  'data:text/plain,x',
  'javascript:alert(1)',
  'ws://api.example.com/',
  'gopher://api.example.com/',
  '//api.example.com/',
  '/etc/passwd',
  'api.example.com',
  'https:api.example.com',
  'https:///api.example.com/',
  'https://api.example.com:22/',
  'https://api.example.com:6443/',
  'https://api.example.com:10250/',
  'https://api.example.com:4222/',
  'https://api.example.com:0/',
  'https://api.example.com:99999/',
  'https://',
  '',
  `https://api.example.com/${'a'.repeat(9_000)}`,
];

/** Public URLs whose host is not on the allowlist. */
const NOT_LISTED = [
  'https://evil.test/',
  'https://evil-api.example.com/',
  'https://api.example.com.evil.test/',
  'https://example.com/',
  'https://allowed.test/',
  'https://xallowed.test/',
  'https://evil.test/?api.example.com',
  'https://evil.test#api.example.com',
  'https://evil.test/@api.example.com',
  'https://8.8.8.8/',
  'https://xn--pi-7kc.example.com/',
  'https://api.example.co/',
];

function codeOf(url: string, rules: TargetRules): string {
  try {
    validateTarget(url, rules);
    return 'allowed';
  } catch (error) {
    return isTemperError(error) ? error.code : String(error);
  }
}

describe('target validation', () => {
  it('the test covers at least sixty rejected URLs', () => assert.ok(NEVER.length + NOT_LISTED.length >= 60));

  for (const url of NEVER) {
    it(`target validation rejects ${JSON.stringify(url.slice(0, 80))}`, () =>
      assert.equal(codeOf(url, ANY_HOST), 'TEMPER_FETCH_DENIED'));
  }
  for (const url of NOT_LISTED) {
    it(`target validation rejects ${url}, which is not on the allowlist`, () =>
      assert.equal(codeOf(url, RULES), 'TEMPER_FETCH_DENIED'));
  }

  it('target validation accepts an allowlisted host in upper or lower case, with path and query', () => {
    const target = validateTarget('https://API.Example.com/v1/x?y=%20z', RULES);
    assert.deepEqual([target.host, target.port, target.isHttps], ['api.example.com', 443, true]);
    assert.equal(codeOf('https://deep.er.allowed.test/', RULES), 'allowed');
  });

  it('target validation accepts http and other ports only when the rules allow them', () => {
    assert.equal(codeOf('http://api.example.com/', RULES), 'TEMPER_FETCH_DENIED');
    assert.equal(codeOf('http://api.example.com/', { ...RULES, allowHttp: true }), 'allowed');
    assert.equal(codeOf('https://api.example.com:8443/', RULES), 'TEMPER_FETCH_DENIED');
    assert.equal(codeOf('https://api.example.com:8443/', { ...RULES, ports: [8443] }), 'allowed');
  });

  it('target validation accepts a public IP address that is on the allowlist', () => {
    assert.equal(validateTarget('https://93.184.215.14/', ANY_HOST).isIpAddress, true);
    assert.equal(validateTarget('https://[2606:4700::1111]/', ANY_HOST).host, '2606:4700::1111');
  });
});
