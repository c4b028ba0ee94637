import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { systemClock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { createLeases, type LeaseClaims } from './lease.ts';
import { leaseOf, settlingLeaseOf } from './lease-check.ts';

const POD = {
  kind: 'pod',
  namespace: 'team-a',
  podName: 'p',
  podUid: 'pod-1',
  agent: 'scout',
  agentUid: 'a-1',
} as const;
const KEY = randomBytes(32);
const CLAIMS: LeaseClaims = {
  agentUid: 'a-1',
  agent: 'scout',
  namespace: 'team-a',
  podUid: 'pod-1',
  message: 'm',
  session: 's',
  root: 'm',
  depth: 0,
  deadline: new Date(Date.now() + 3_600_000).toISOString(),
  at: { streamSequence: 1, consumerSequence: 1, deliveries: 1 },
};

describe('a lease that is shown', () => {
  const leases = createLeases(() => [KEY]);
  const request = { pod: POD, about: {} } as unknown as FastifyRequest;

  function deps(change: { suspended?: boolean; bound?: boolean; known?: boolean } = {}): GatewayDeps {
    const { suspended = false, bound = true, known = true } = change;
    const state = { uid: 'a-1', suspended } as AgentState;
    return {
      clock: systemClock,
      leases,
      identity: { stillBound: () => bound },
      directory: { byUid: () => (known ? state : undefined) },
    } as unknown as GatewayDeps;
  }

  const both = [leaseOf, settlingLeaseOf];
  const refused = (check: typeof leaseOf, claims: Partial<LeaseClaims>, house: GatewayDeps, code: ErrorCode) =>
    assert.throws(
      () => check(request, leases.sign({ ...CLAIMS, ...claims }), house),
      (error) => isTemperError(error, code),
    );

  it('holds for the pod it was given to', () => {
    for (const check of both) assert.deepEqual(check(request, leases.sign(CLAIMS), deps()).claims, CLAIMS);
  });

  it('is none for another pod, agent or namespace', () => {
    for (const check of both) {
      for (const other of [{ podUid: 'pod-2' }, { agentUid: 'a-2' }, { namespace: 'team-b' }]) {
        refused(check, other, deps(), 'TEMPER_LEASE_INVALID');
      }
    }
  });

  it('ends with the binding, and with the agent', () => {
    for (const check of both) {
      refused(check, {}, deps({ bound: false }), 'TEMPER_POD_NOT_BOUND');
      refused(check, {}, deps({ known: false }), 'TEMPER_POD_NOT_BOUND');
    }
  });

  it('after its deadline, or of a suspended agent, is good for ending the delivery alone', () => {
    const late = { deadline: new Date(Date.now() - 1).toISOString() };
    refused(leaseOf, late, deps(), 'TEMPER_LEASE_EXPIRED');
    refused(leaseOf, {}, deps({ suspended: true }), 'TEMPER_AGENT_SUSPENDED');
    settlingLeaseOf(request, leases.sign({ ...CLAIMS, ...late }), deps({ suspended: true }));
  });
});
