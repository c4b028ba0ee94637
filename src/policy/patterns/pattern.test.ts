import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { compilePattern, matches } from './pattern.ts';
import type { SubjectKind } from './pattern-subjects.ts';

type Row = readonly [kind: SubjectKind, pattern: string, yes: readonly string[], no: readonly string[]];

const TABLE: readonly Row[] = [
  ['tool', 'file_read', ['file_read', ' File_Read '], ['file_reads', 'file', '']],
  ['tool', 'csv_*', ['csv_', 'csv_rows'], ['csv', 'xcsv_rows']],
  ['tool', 'web_*_*', ['web_a_b', 'web_a_b_c'], ['web_a']],
  ['tool', '*a*b*', ['ab', 'xaybz'], ['ba', 'a']],
  ['tool', '*', ['anything'], ['']],
  ['model', 'openai/*', ['openai/gpt-4o'], ['openai/a/b', 'openai', 'anthropic/x', 'openai/']],
  ['model', 'openrouter/**', ['openrouter/a', 'openrouter/a/b', 'openrouter'], ['openai/a']],
  ['key', 'self.*', ['self.notes', 'self.notes.today'], ['self', 'selfish.notes', 'other.self.x', 'self..x']],
  ['key', 'self.*.draft', ['self.a.draft'], ['self.a.b.draft', 'self.draft']],
  ['key', '*', ['a', 'a.b.c'], ['']],
  ['action', 'code:*', ['code:read'], ['code', 'codes:read']],
  ['name', 'summar*', ['summarizer', 'summar/x'], ['a-summarizer']],
  ['path', 'data/*', ['data/a', './data//a', 'data/a/'], ['data', 'data/a/b', '/data/a', 'data/../etc/passwd']],
  ['path', '/data/**', ['/data', '/data/a/b'], ['data/a', '/database', '/data/../etc', '/data/%2e%2e/etc']],
  ['path', 'a/**/z', ['a/z', 'a/b/z', 'a/b/c/z'], ['a/zz', 'b/a/z']],
  ['path', '**', ['a', '/', '/a/b', '.'], ['..', 'a\\b', 'a\0b', 'a/%2E%2E', 'a%2fb']],
  ['path', '*/b', ['a/b'], ['/b', 'b']],
  ['path', '*.csv', ['a.csv', '.csv'], ['a/b.csv', 'a.csvx']],
  ['host', 'api.example.com', ['API.example.com.', 'api.example.com:443'], ['api.example.com:80', 'x.api.example.com']],
  [
    'host',
    '*.example.com',
    ['a.example.com'],
    ['example.com', 'a.b.example.com', 'aexample.com', 'a.example.com.evil'],
  ],
  ['host', '**.example.com', ['example.com', 'a.b.example.com'], ['badexample.com']],
  ['host', 'example.com:*', ['example.com:1', 'example.com'], ['example.com:0', 'example.com:65536', 'example.com:x']],
  ['host', '*', ['anything.org', 'localhost'], ['anything.org:22', '1.2.3.4', '[::1]', '2130706433', '0x7f.1']],
  ['host', '**:*', ['a.b:22'], ['127.0.0.1:22', 'a b:1', 'a:1:2']],
  ['host', '192.0.2.7:8443', ['192.0.2.7:8443', '3221225991:8443'], ['192.0.2.7', '192.0.2.8:8443']],
  ['host', '[2001:db8::1]', ['[2001:DB8:0::1]', '[2001:db8::1]:443'], ['[2001:db8::2]', '2001:db8::1']],
  ['host', 'bücher.example', ['xn--bcher-kva.example', 'BÜCHER.example'], ['bucher.example']],
];

describe('a pattern', () => {
  for (const [kind, text, yes, no] of TABLE) {
    it(`${kind} ${text} matches its subjects and no others`, () => {
      const pattern = compilePattern(text, kind);
      for (const subject of yes) assert.equal(matches(pattern, subject), true, `should match ${subject}`);
      for (const subject of no) assert.equal(matches(pattern, subject), false, `should not match ${subject}`);
    });
  }

  const REFUSED: readonly (readonly [kind: SubjectKind, pattern: string, position: number])[] = [
    ['tool', '', 1],
    ['tool', '  ', 1],
    ['tool', 'a\0b', 2],
    ['tool', 'x'.repeat(257), 257],
    ['path', 'a/../b', 3],
    ['path', 'a\\b', 2],
    ['path', 'a/%2e%2e/b', 3],
    ['path', 'a/b**', 4],
    ['key', 'self..x', 6],
    ['key', '.self', 1],
    ['model', 'openai/', 8],
    ['host', 'api.*.com', 5],
    ['host', '*api.example.com', 1],
    ['host', 'https://example.com', 7],
    ['host', '10.0.0.*', 8],
    ['host', '*.0.0.1', 3],
    ['host', '10.0.0.0/8', 9],
    ['host', 'example.com:', 13],
    ['host', 'example.com:0', 13],
    ['host', 'example.com:99999', 13],
    ['host', '::1', 1],
    ['host', 'a..b', 1],
    ['host', '*.com', 3],
    ['host', '**.co.uk:*', 4],
    ['host', '**.GitHub.io.', 4],
    ['host', '*.公司.cn', 3],
    ['host', '**.amazonaws.com', 4],
  ];
  for (const [kind, text, position] of REFUSED) {
    it(`the parser refuses ${kind} ${JSON.stringify(text.slice(0, 24))} and reports the position`, () => {
      assert.throws(
        () => compilePattern(text, kind),
        (error) => isTemperError(error, 'TEMPER_PATTERN_INVALID') && error.details.position === position,
      );
    });
  }

  it('matching time does not explode with the number of wildcards', () => {
    const pattern = compilePattern(`${'*a'.repeat(100)}b`, 'tool');
    assert.equal(matches(pattern, 'a'.repeat(4_000)), false);
    const deep = compilePattern(`${'**/a/'.repeat(40)}b`, 'path');
    assert.equal(matches(deep, 'a/'.repeat(2_000)), false);
  });

  it('a text above the length limit matches no pattern', () => {
    assert.equal(matches(compilePattern('*', 'name'), 'a'.repeat(4_097)), false);
  });
});
