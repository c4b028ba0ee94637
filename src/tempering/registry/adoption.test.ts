import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chainRecord } from '../../audit/chain.ts';
import type { AuditRecord, ChainedRecord } from '../../audit/port.ts';
import { ADOPTED, foldActivations } from './activation.ts';

const accepted = (object: string, digest: string): AuditRecord => ({
  action: 'tool.accepted',
  actor: 'agent/a',
  evidence: 'observed',
  subject: digest,
  facts: { object, agent: 'a', namespace: 'default', tier: 'Agent', record: 'r' },
});
const demoted = (digest: string): AuditRecord => ({
  action: 'tool.demoted',
  actor: 'user/me',
  evidence: 'observed',
  subject: digest,
  facts: { reason: 'wrong' },
});
const adopted = (tools: string): AuditRecord => ({
  action: ADOPTED,
  actor: 'user/me',
  evidence: 'observed',
  subject: 'state',
  facts: { tools },
});

/** Which objects are active after these records. */
function activeAfter(...records: AuditRecord[]): string[] {
  const chain: ChainedRecord[] = [];
  for (const record of records) chain.push(chainRecord(record, chain.at(-1), '2026-01-01T00:00:00Z'));
  return [...foldActivations(chain).byObject.values()].filter(({ active }) => active).map(({ object }) => object);
}

describe('the tools of an adopted state folder', () => {
  it('an adoption without tools makes every earlier tool inactive, and later ones stay active', () => {
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('inactive')), []);
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('inactive'), accepted('y', 'd2')), ['y']);
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('inactive'), accepted('x', 'd1')), ['x']);
  });

  it('an adoption with tools keeps them, also after one without', () => {
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('active')), ['x']);
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('inactive'), adopted('active')), ['x']);
  });

  it('an adoption revives no demoted tool', () => {
    assert.deepEqual(activeAfter(accepted('x', 'd1'), demoted('d1'), adopted('inactive'), adopted('active')), []);
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('inactive'), demoted('d1'), adopted('active')), []);
  });

  it('an adoption with an unknown choice trusts no tool', () => {
    assert.deepEqual(activeAfter(accepted('x', 'd1'), adopted('maybe')), []);
  });
});
