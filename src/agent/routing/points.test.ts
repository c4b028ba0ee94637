import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { complexityOf, complexityPoints, type RoutedRequest } from './points.ts';
import { routeMessage } from './route-message.ts';

const request = (changes: Partial<RoutedRequest> = {}): RoutedRequest => ({
  system: '',
  messages: [''],
  tools: 0,
  ...changes,
});
const spec = { primary: 'a/primary', routing: { simple: 'a/small', complex: 'a/large' } };
const message = { before: [], text: 'hi', tools: 0, system: '' };

/** Each term of the formula alone. */
const POINTS: [what: string, request: RoutedRequest, points: number][] = [
  ['an empty message', request(), 0],
  ['four characters', request({ messages: ['abcd'] }), 1],
  ['three characters', request({ messages: ['abc'] }), 0],
  ['characters of all messages', request({ messages: ['a'.repeat(200), 'b'.repeat(200)] }), 100],
  ['three tools', request({ tools: 3 }), 60],
  ['a code marker', request({ messages: ['```'] }), 30],
  ['a code marker twice', request({ messages: ['``````'] }), 31],
  ['three code markers in any case', request({ messages: ['ASYNC fn x; Return 1'] }), 95],
  ['a code marker in an earlier message', request({ messages: ['fn x', ''] }), 1],
  ['ten messages', request({ messages: Array.from({ length: 10 }, () => '') }), 0],
  ['twelve messages', request({ messages: Array.from({ length: 12 }, () => '') }), 30],
  ['a system prompt of 500 characters', request({ system: 'x'.repeat(500) }), 0],
  ['a system prompt of 609 characters', request({ system: 'x'.repeat(609) }), 10],
];

describe('the points of a message', () => {
  for (const [what, given, points] of POINTS) {
    it(`${what}: ${points} points`, () => assert.equal(complexityPoints(given), points));
  }

  it('less than 100 points are simple, 500 and more complex', () => {
    assert.deepEqual([0, 99, 100, 499, 500, 1e6].map(complexityOf), [
      'Simple',
      'Simple',
      'Medium',
      'Medium',
      'Complex',
      'Complex',
    ]);
  });

  it('a longer message with more tools never has fewer points', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.nat(50), (text, more, tools) => {
        const before = complexityPoints(request({ messages: [text], tools }));
        assert.ok(complexityPoints(request({ messages: [text + more], tools: tools + 1 })) >= before);
      }),
    );
  });
});

describe('the model of a message', () => {
  it('an agent without routing has its primary model, and reports no choice', () => {
    assert.deepEqual(routeMessage({ primary: 'a/primary' }, message), { model: 'a/primary', events: [] });
  });

  it('the complexity chooses the model, and a complexity without one has the primary model', () => {
    const chosen = [0, 10, 40].map((tools) => routeMessage(spec, { ...message, tools }));
    assert.deepEqual(
      chosen.map(({ model }) => model),
      ['a/small', 'a/primary', 'a/large'],
    );
    assert.deepEqual(chosen[1]?.events, [
      { type: 'model-routed', points: 200, complexity: 'Medium', model: 'a/primary' },
    ]);
  });

  it('the conversation before the message counts', () => {
    const before = [{ role: 'user' as const, text: 'x'.repeat(4_000) }];
    assert.equal(routeMessage(spec, { ...message, before }).model, 'a/large');
  });
});
