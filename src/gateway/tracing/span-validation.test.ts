import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../../lib/errors.ts';
import type { ReportedSpan } from '../../telemetry/reported-span.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import { parentSpanOf } from './message-traces.ts';
import { validateSpan } from './span-validation.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const SECONDS = NOW.getTime() / 1_000;
const TRACE = 'a'.repeat(32);
const CLAIMS: DeliveryTokenClaims = {
  agentUid: 'a-1',
  agent: 'scout',
  namespace: 'team-a',
  podUid: 'pod-1',
  message: 'msg-1',
  session: 's-1',
  root: 'msg-0',
  depth: 1,
  deadline: '2026-06-01T13:00:00Z',
  traceparent: `00-${TRACE}-${'b'.repeat(16)}-01`,
  at: { streamSequence: 1, deliveries: 1 },
};

function aSpan(changes: Partial<ReportedSpan> = {}): ReportedSpan {
  return {
    traceId: TRACE,
    spanId: 'c'.repeat(16),
    parentSpanId: 'b'.repeat(16),
    name: 'execute_tool file_read',
    kind: 'INTERNAL',
    start: [SECONDS - 2, 0],
    end: [SECONDS - 1, 5],
    failed: false,
    attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'file_read' },
    ...changes,
  };
}

describe('the validation of a reported span', () => {
  it('a valid span is exported unchanged', () => {
    const { attributes, ...rest } = validateSpan(aSpan(), CLAIMS, NOW);
    const { attributes: given, ...same } = aSpan();
    assert.deepEqual(rest, same);
    assert.deepEqual(attributes, { ...given, 'gen_ai.agent.name': 'scout', 'gen_ai.conversation.id': 's-1' });
  });

  it('a span of another trace or with implausible times is refused', () => {
    const wrong: Partial<ReportedSpan>[] = [
      { traceId: 'd'.repeat(32) },
      { end: [SECONDS - 3, 0] },
      { start: [SECONDS - 90_001, 0] },
      { end: [SECONDS + 301, 0] },
      { attributes: {} },
      { attributes: { 'gen_ai.operation.name': 'toString' } },
    ];
    for (const changes of wrong) {
      const check = (): ReportedSpan => validateSpan(aSpan(changes), CLAIMS, NOW);
      assert.throws(check, (error) => isTemperError(error, 'TEMPER_REQUEST_INVALID'), JSON.stringify(changes));
    }
    const { traceparent: _, ...untraced } = CLAIMS;
    assert.throws(() => validateSpan(aSpan(), untraced, NOW));
  });

  it('a span keeps only allowed attributes, and gets agent, session and message from the delivery token', () => {
    const secret = 'text of the user';
    const names = fc.constantFrom(
      'gen_ai.agent.name',
      'gen_ai.conversation.id',
      'gen_ai.usage.input_tokens',
      'gen_ai.input.messages',
      'messaging.message.id',
      'error.type',
      'temper.message.root_id',
      '__proto__',
      'constructor',
    );
    const operations = fc.constantFrom('invoke_agent', 'chat', 'execute_tool', 'process');
    fc.assert(
      fc.property(operations, fc.uniqueArray(names), fc.string(), (operation, keys, name) => {
        const attributes = Object.fromEntries(keys.map((key) => [key, secret]));
        const operationKey = operation === 'process' ? 'messaging.operation.type' : 'gen_ai.operation.name';
        const span = validateSpan(
          aSpan({ name, attributes: { ...attributes, [operationKey]: operation } }),
          CLAIMS,
          NOW,
        );
        assert.ok(!JSON.stringify(span).includes(secret));
        assert.equal(span.attributes['gen_ai.conversation.id'], 's-1');
        assert.ok(span.name.startsWith(operation));
        if (operation === 'process') assert.equal(span.attributes['messaging.message.id'], 'msg-1');
        else assert.equal(span.attributes['gen_ai.agent.name'], 'scout');
      }),
    );
  });

  it('names and values of a span have limited length and no control characters', () => {
    const hostile = `\u001b[2J${'x'.repeat(4_000)}`;
    const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': hostile };
    const { name, attributes: kept } = validateSpan(aSpan({ attributes }), CLAIMS, NOW);
    assert.ok(name.length < 160 && !name.includes('\u001b'));
    assert.ok(String(kept['gen_ai.request.model']).length <= 140);
  });
});

describe('the parent span in the header of a pod', () => {
  const own = `00-${TRACE}-${'e'.repeat(16)}-01`;
  it('a parent of the message’s trace with the same sampling flag is used', () => {
    assert.equal(parentSpanOf(CLAIMS, own), own);
  });
  it('otherwise the delivery is the parent', () => {
    for (const header of [
      undefined,
      '',
      [own],
      own.replace(TRACE, 'f'.repeat(32)),
      own.replace(/01$/, '00'),
      `${own}x`,
    ]) {
      assert.equal(parentSpanOf(CLAIMS, header), CLAIMS.traceparent);
    }
    assert.equal(parentSpanOf({}, own), undefined);
  });
});
