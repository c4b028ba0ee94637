import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import type { Json } from '../../lib/json.ts';
import { toJsonText, toYamlText } from './data-format.ts';
import { lookupKind, STATE_KINDS } from './kinds.ts';
import { parseLabelSelector } from './label-selector.ts';
import { describeEvents, describeObject } from './sections.ts';
import { oneTarget, parseTargets } from './targets.ts';

const HOSTILE = 'a\u001b[2Jb\u202ec\u{e0001}d\ne';

function assertEscaped(text: string): void {
  for (const character of ['\u001b', '\u202e', '\u{e0001}']) assert.ok(!text.includes(character), text);
}

describe('the formats of objects', () => {
  it('JSON and YAML escape control characters, and parsing gives the same value', () => {
    const value = { [HOSTILE]: [HOSTILE, '分析', 'a: b', 1, null, { deep: HOSTILE }] };
    for (const text of [toJsonText(value), toYamlText(value)]) {
      assert.ok(text.endsWith('\n'));
      assertEscaped(text);
    }
    assert.deepEqual(JSON.parse(toJsonText(value)), value);
    assert.deepEqual(parse(toYamlText(value)), value);
  });
});

describe('the targets of get and describe', () => {
  it('targets are a kind, a list of kinds, all kinds, names, or KIND/NAME', () => {
    const all = ['agents', 'tools'];
    assert.deepEqual(parseTargets(['agents'], all), { kinds: ['agents'], names: [] });
    assert.deepEqual(parseTargets(['agents,tp'], all), { kinds: ['agents', 'tp'], names: [] });
    assert.deepEqual(parseTargets(['ALL'], all), { kinds: all, names: [] });
    assert.deepEqual(parseTargets(['all,agents'], all), { kinds: all, names: [] });
    assert.deepEqual(parseTargets(['agent', 'a', 'b'], all), { kinds: ['agent'], names: ['a', 'b'] });
    assert.deepEqual(parseTargets(['agent/a', 'agent/b'], all), { kinds: ['agent'], names: ['a', 'b'] });
    assert.deepEqual(oneTarget(['agent/a'], all), { kind: 'agent', name: 'a' });
  });

  it('targets that are ambiguous are refused as usage', () => {
    for (const words of [
      [','],
      ['agents,tools', 'x'],
      ['agent/a', 'tool/b'],
      ['agent/'],
      ['/a'],
      ['a/b/c'],
      ['agent/a', 'b'],
    ])
      assert.throws(() => parseTargets(words, []), { code: 'TEMPER_USAGE' }, words.join(' '));
    for (const words of [['agents'], ['agents', 'a', 'b'], ['all']])
      assert.throws(() => oneTarget(words, ['agents', 'tools']), { code: 'TEMPER_USAGE' }, words.join(' '));
  });

  it('every kind is found by the name that -o name prints', () => {
    for (const name of STATE_KINDS) assert.equal(lookupKind(lookupKind(name).qualifiedName), lookupKind(name));
    assert.throws(() => lookupKind('pods'), { code: 'TEMPER_USAGE', message: /known: agents, .*, all/ });
  });
});

describe('a label selector', () => {
  const object: Json = { metadata: { labels: { team: 'sales', env: 'prod' } } };
  const bare: Json = { openedAt: 'now' };

  it('a label selector accepts the objects that kubectl would select', () => {
    const cases: readonly (readonly [string, boolean, boolean])[] = [
      ['team=sales', true, false],
      ['team == sales, env=prod', true, false],
      ['team=ops', false, false],
      ['team!=ops', true, true],
      ['team', true, false],
      ['!team', false, true],
      ['team in (ops, sales)', true, false],
      ['team notin (ops)', true, true],
      ['team notin (sales),env', false, false],
    ];
    for (const [selector, ofObject, ofBare] of cases) {
      const accepts = parseLabelSelector(selector);
      assert.deepEqual([accepts(object), accepts(bare)], [ofObject, ofBare], selector);
    }
  });

  it('a label selector that is not valid is refused as usage', () => {
    for (const selector of ['', 'a=b,', '=b', 'a in b', 'a in (b', 'a=b=c', 'a b', '!'])
      assert.throws(() => parseLabelSelector(selector), { code: 'TEMPER_USAGE' }, selector);
  });
});

describe('a description in sections', () => {
  const now = new Date('2026-01-01T01:00:00Z');
  const conditions = [
    {
      type: 'Ready',
      status: 'True',
      reason: 'Idle',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      message: 'm'.repeat(300),
    },
  ];

  it('a description has header, spec, status and conditions, and keeps long messages whole', () => {
    const metadata = { name: 'analyst', labels: { a: '1', b: '2' }, creationTimestamp: '2026-01-01T00:00:00Z' };
    const object = {
      apiVersion: 'v',
      kind: 'Agent',
      metadata,
      spec: { x: 1 },
      status: { level: 'standard', conditions },
    };
    const text = describeObject(object, 'other', now, [{ title: 'Evidence', value: { tests: 2 } }]);
    assert.deepEqual(text.split('\n'), [
      'Name:         analyst',
      'Namespace:    default',
      'Labels:       a=1',
      '              b=2',
      'Annotations:  <none>',
      'API Version:  v',
      'Kind:         Agent',
      'Created:      2026-01-01T00:00:00Z (1h ago)',
      'Spec:',
      '  x: 1',
      'Status:',
      '  level: standard',
      'Conditions:',
      `  TYPE   STATUS  REASON  AGE  MESSAGE`,
      `  Ready  True    Idle    1h   ${'m'.repeat(300)}`,
      'Evidence:',
      '  tests: 2',
      '',
    ]);
  });

  it('a description of a record without metadata starts with its name and prints no control character', () => {
    const text = describeObject({ lastUsedAt: HOSTILE, kind: 'tool', notes: { a: HOSTILE } }, 's-1', now, []);
    assert.match(text, /^Name: +s-1\nLast Used At: +a\\u\{1b\}/);
    assert.match(text, /\nKind: +tool\n/);
    assertEscaped(text);
  });

  it('events are a table, and their absence is stated', () => {
    assert.equal(describeEvents([]), 'Events:       <none>\n');
    assert.match(
      describeEvents([{ seen: '1m', type: 'Warning', reason: 'NotReady', message: 'no node' }]),
      /^Events:\n {2}TYPE +REASON +AGE +MESSAGE\n {2}Warning +NotReady +1m +no node\n$/,
    );
  });
});
