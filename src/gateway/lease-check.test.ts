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

describe('the authorization of a delivery token', () => {
  const leases = createLeases(() => [KEY]);
  const request = { pod: POD, logFields: {} } as unknown as FastifyRequest;

  function deps(change: { suspended?: boolean; bound?: boolean; known?: boolean } = {}): GatewayDeps {
    const { suspended = false, bound = true, known = true } = change;
    const state = { uid: 'a-1', suspended } as AgentState;
    const typed: Partial<GatewayDeps> = { clock: systemClock, leases };
    return {
      ...typed,
      identity: { stillBound: () => bound },
      directory: { byUid: () => (known ? state : undefined) },
    } as unknown as GatewayDeps;
  }

  const both = [leaseOf, settlingLeaseOf];
  const refused = (check: typeof leaseOf, claims: Partial<LeaseClaims>, gateway: GatewayDeps, code: ErrorCode) =>
    assert.throws(
      () => check(request, leases.sign({ ...CLAIMS, ...claims }), gateway),
      (error) => isTemperError(error, code),
    );

  it('the token is valid for the pod that received it', () => {
    for (const check of both) assert.deepEqual(check(request, leases.sign(CLAIMS), deps()).claims, CLAIMS);
  });

  it('the token is invalid for another pod, agent or namespace', () => {
    for (const check of both) {
      for (const other of [{ podUid: 'pod-2' }, { agentUid: 'a-2' }, { namespace: 'team-b' }]) {
        refused(check, other, deps(), 'TEMPER_LEASE_INVALID');
      }
    }
  });

  it('the token is refused after the binding or the agent was removed', () => {
    for (const check of both) {
      refused(check, {}, deps({ bound: false }), 'TEMPER_POD_NOT_BOUND');
      refused(check, {}, deps({ known: false }), 'TEMPER_POD_NOT_BOUND');
    }
  });

  it('after its deadline, or for a suspended agent, the token can only end the delivery', () => {
    const expired = { deadline: new Date(Date.now() - 1).toISOString() };
    refused(leaseOf, expired, deps(), 'TEMPER_LEASE_EXPIRED');
    refused(leaseOf, {}, deps({ suspended: true }), 'TEMPER_AGENT_SUSPENDED');
    settlingLeaseOf(request, leases.sign({ ...CLAIMS, ...expired }), deps({ suspended: true }));
  });
});
