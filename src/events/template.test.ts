import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../lib/json.ts';
import { renderTemplate, templateError } from './template.ts';

const event = (data: Json) => ({
  id: 'evt-1',
  subject: 'orders.paid',
  data,
  source: 'Agent' as const,
  agent: 'shop',
  time: '2026-03-03T09:00:00.000Z',
  tainted: false,
});

describe('the template of a message', () => {
  it('a template has named members of the event, and nothing else', () => {
    for (const template of [
      'plain',
      '{{event}}',
      '{{ event.order.id }}',
      '{{subject}} {{source}} {{agent}} {{time}} {{id}}',
      '{x}',
    ])
      assert.equal(templateError(template), undefined, template);
    const wrong = ['{{}}', '{{env.KEY}}', '{{event.}}', '{{event[0]}}', '{{constructor}}', '{{event}}'.repeat(17)];
    for (const template of wrong) assert.notEqual(templateError(template), undefined, template);
  });

  it('members are inserted as text, strings without quotes, absent ones as nothing', () => {
    const data = { order: { id: 'A-7', lines: [1, 2] } };
    const text = renderTemplate(
      '{{event.order.id}}|{{event.order.lines}}|{{event.order}}|{{event.none.x}}|{{agent}}',
      event(data),
    );
    assert.equal(text, 'A-7|[1,2]|{"id":"A-7","lines":[1,2]}||shop');
    assert.equal(renderTemplate('{{event}}', event('plain')), 'plain');
  });

  it('data is not searched for placeholders, and only own members are found', () => {
    assert.equal(renderTemplate('{{event.a}}', event({ a: '{{id}} $& $1' })), '{{id}} $& $1');
    assert.equal(renderTemplate('{{event.constructor}}{{event.__proto__}}', event({})), '');
  });

  it('a message that is too long is refused', () => {
    assert.throws(() => renderTemplate('{{event}}'.repeat(16), event('x'.repeat(16_384))), {
      code: 'TEMPER_EVENT_REFUSED',
    });
  });
});
