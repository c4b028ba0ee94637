import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { POD } from '../http/pod.testing.ts';
import { createDeliveryTokens, type DeliveryTokenClaims } from './token.ts';
import { authorizeDelivery, authorizeDeliveryEnd } from './authorize.ts';

const KEY = randomBytes(32);
const CLAIMS: DeliveryTokenClaims = {
  agentUid: 'a-1',
  agent: 'scout',
  namespace: 'team-a',
  podUid: 'pod-1',
  message: 'm',
  session: 's',
  root: 'm',
  depth: 0,
  deadline: new Date(Date.now() + 3_600_000).toISOString(),
  at: { streamSequence: 1, deliveries: 1 },
};

describe('the authorization of a delivery token', () => {
  const deliveryTokens = createDeliveryTokens(() => [KEY]);
  const request = { pod: POD, logFields: {} } as unknown as FastifyRequest;

  function deps(change: { suspended?: boolean; bound?: boolean; known?: boolean } = {}): GatewayDeps {
    const { suspended = false, bound = true, known = true } = change;
    const state = { uid: 'a-1', suspended } as AgentState;
    const typed: Partial<GatewayDeps> = { clock: systemClock, deliveryTokens };
    return {
      ...typed,
      identity: { isStillBound: () => bound },
      directory: { byUid: () => (known ? state : undefined) },
    } as unknown as GatewayDeps;
  }

  const both = [authorizeDelivery, authorizeDeliveryEnd];
  const refused = (
    check: typeof authorizeDelivery,
    claims: Partial<DeliveryTokenClaims>,
    gateway: GatewayDeps,
    code: ErrorCode,
  ) =>
    assert.throws(
      () => check(request, deliveryTokens.sign({ ...CLAIMS, ...claims }), gateway),
      (error) => isTemperError(error, code),
    );

  it('the token is valid for the pod that received it', () => {
    for (const check of both) assert.deepEqual(check(request, deliveryTokens.sign(CLAIMS), deps()).claims, CLAIMS);
  });

  it('the token is invalid for another pod, agent or namespace', () => {
    for (const check of both) {
      for (const other of [{ podUid: 'pod-2' }, { agentUid: 'a-2' }, { namespace: 'team-b' }]) {
        refused(check, other, deps(), 'TEMPER_DELIVERY_TOKEN_INVALID');
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
    refused(authorizeDelivery, expired, deps(), 'TEMPER_DELIVERY_TOKEN_EXPIRED');
    refused(authorizeDelivery, {}, deps({ suspended: true }), 'TEMPER_AGENT_SUSPENDED');
    authorizeDeliveryEnd(request, deliveryTokens.sign({ ...CLAIMS, ...expired }), deps({ suspended: true }));
  });
});
