import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { Amounts, Denial } from '../../ledger/port.ts';
import { createDecider } from '../../policy/decider.ts';
import { PRIVATE_NETWORK_RULE } from '../../policy/private-data/sources.ts';
import { aSnapshot } from '../../policy/policy.testing.ts';
import type { AgentState } from '../agent-state.ts';
import { createDeliveryTokens, type DeliveryTokenClaims } from '../delivery/token.ts';
import { namedOwner } from '../../gateway-api/egress/named-owner.ts';
import { POD } from '../http/pod.testing.ts';
import { authorizeConnection, type EgressDeps, reviewConnections } from './connections.ts';

const CLAIMS: DeliveryTokenClaims = {
  agentUid: 'a-1',
  agent: 'scout',
  namespace: 'team-a',
  podUid: 'pod-1',
  message: 'm-1',
  session: 's-1',
  root: 'm-1',
  depth: 0,
  deadline: '2026-05-04T12:10:00Z',
  at: { streamSequence: 1, deliveries: 1 },
};
const KEY = randomBytes(32);
const HOST = { host: 'api.example.com', port: 443 };
const DENIAL: Denial = {
  granted: false,
  quota: 'spec.quotas.networkBytesPerHour',
  limit: 1_000,
  used: 1_000,
  resumesAt: '2026-05-04T13:00:00Z',
};

/** What a test changes, and what it observes. */
interface Setup {
  suspended: boolean;
  bound: boolean;
  tainted: boolean;
  left: number;
  ledgerFails: boolean;
  allowed: string[];
  charged: Amounts[];
  markReads: number;
  hasPrivateData: boolean;
  /** Hosts of calls that an approver permitted. */
  approved: string[];
  used: string[];
}

describe('connections through the egress proxy', () => {
  const tokens = createDeliveryTokens(() => [KEY]);
  const clock = new FakeClock('2026-05-04T12:00:00Z');
  const op = { signal: NEVER_ABORTED, deadline: 1_000, key: 'egress/1' };
  let setup: Setup;
  let deps: EgressDeps;

  beforeEach(() => {
    setup = {
      suspended: false,
      bound: true,
      tainted: false,
      left: 1_000,
      ledgerFails: false,
      allowed: ['**.example.com'],
      charged: [],
      markReads: 0,
      hasPrivateData: false,
      approved: [],
      used: [],
    };
    const state = (): AgentState =>
      ({
        uid: 'a-1',
        suspended: setup.suspended,
        agent: { metadata: { name: 'scout', namespace: 'team-a' }, spec: {} },
        policy: { metadata: { name: 'p', uid: 'policy-1', namespace: 'team-a' }, spec: {} },
        ancestors: [],
      }) as unknown as AgentState;
    deps = {
      clock,
      deliveryTokens: tokens,
      identity: {
        egressClient: async (token: string) => {
          if (token === 'pod-1') return POD;
          if (token === 'gateway') return { ...POD, kind: 'egress-gateway' };
          throw new TemperError('TEMPER_TOKEN_INVALID', 'the token was rejected');
        },
        isStillBound: () => setup.bound,
      },
      directory: {
        byUid: (uid: string) => (uid === 'a-1' ? state() : undefined),
        policy: () => undefined,
        decider: (_state: AgentState, tainted: boolean, { hasPrivateData = false } = {}) =>
          createDecider(
            aSnapshot({
              agent: { grants: { network: ['**'] } },
              policy: { egress: { allow: setup.allowed }, tainted: { network: ['safe.example.com'] } },
              tainted,
              hasPrivateData,
            }),
          ),
      },
      sessions: {
        marks: async () => {
          setup.markReads += 1;
          return { tainted: setup.tainted, hasPrivateData: setup.hasPrivateData };
        },
      },
      approvals: {
        permitsHost: async ({ message }: DeliveryTokenClaims, asked: { rule: string; target: string }) =>
          message === 'm-1' && asked.rule === PRIVATE_NETWORK_RULE && setup.approved.includes(asked.target),
      },
      recorder: {
        used: async ({ message }: DeliveryTokenClaims, category: string) =>
          void setup.used.push(`${message} ${category}`),
      },
      ledger: {
        ledger: () => ({
          reserve: async () => {
            if (setup.ledgerFails) throw new TemperError('TEMPER_LEDGER_UNAVAILABLE', 'no response');
            return setup.left > 0 ? { granted: true, id: 'r' } : DENIAL;
          },
          commit: async (_id: string, used: Amounts) => {
            setup.left -= used.networkBytes ?? 0;
            setup.charged.push(used);
          },
        }),
      },
    } as unknown as EgressDeps;
  });

  const ask = (
    change: Partial<{ token: string; claims: Partial<DeliveryTokenClaims>; host: string; port: number }> = {},
  ) => {
    const { token = 'pod-1', claims, ...target } = change;
    const deliveryToken = tokens.sign({ ...CLAIMS, ...claims });
    return authorizeConnection({ token, deliveryToken, address: '10.0.0.7', ...HOST, ...target }, deps, op);
  };
  const refused = (work: Promise<unknown>, code: ErrorCode): Promise<void> =>
    assert.rejects(work, (error) => isTemperError(error, code));
  const report = (...bytes: number[]) =>
    reviewConnections(
      {
        connections: bytes.map((count, index) => ({
          id: `c-${index}`,
          deliveryToken: tokens.sign(CLAIMS),
          ...HOST,
          bytes: count,
        })),
      },
      deps,
      op,
    );

  it('a connection that the policy allows belongs to the message, up to its deadline, and costs nothing yet', async () => {
    assert.deepEqual(await ask(), {
      caller: 'Pod',
      agent: 'scout',
      agentUid: 'a-1',
      namespace: 'team-a',
      session: 's-1',
      message: 'm-1',
      remainingMs: 600_000,
    });
    assert.deepEqual(setup.charged, [{ networkBytes: 0 }]);
  });

  it('a connection is refused for another pod, a message that is over, a suspended agent, another host and a used quota', async () => {
    await refused(ask({ token: 'pod-2' }), 'TEMPER_TOKEN_INVALID');
    await refused(ask({ claims: { podUid: 'pod-2' } }), 'TEMPER_DELIVERY_TOKEN_INVALID');
    await refused(ask({ claims: { deadline: '2026-05-04T11:59:59Z' } }), 'TEMPER_DELIVERY_TOKEN_EXPIRED');
    await refused(ask({ host: 'example.org' }), 'TEMPER_POLICY_DENIED');
    await refused(ask({ port: 22 }), 'TEMPER_POLICY_DENIED');
    await refused(ask({ host: '93.184.215.14' }), 'TEMPER_POLICY_DENIED');
    setup.bound = false;
    await refused(ask(), 'TEMPER_POD_NOT_BOUND');
    setup.bound = true;
    setup.suspended = true;
    await refused(ask(), 'TEMPER_AGENT_SUSPENDED');
    setup.suspended = false;
    setup.left = 0;
    await refused(ask(), 'TEMPER_QUOTA_EXCEEDED');
    setup.ledgerFails = true;
    await refused(ask(), 'TEMPER_LEDGER_UNAVAILABLE');
  });

  it('a tainted session reaches only the hosts for tainted sessions, whose marks are read for each', async () => {
    await ask({ host: 'safe.example.com' });
    await ask();
    assert.equal(setup.markReads, 2);
    setup.tainted = true;
    await refused(ask(), 'TEMPER_POLICY_DENIED');
    await ask({ host: 'safe.example.com' });
  });

  it('a gateway connects to the host that another gateway signed for a call, and a pod cannot use such a token', async () => {
    setup.allowed = [];
    const connects = { ...HOST, by: 'Connection' } as const;
    const { caller, agent } = await ask({ token: 'gateway', claims: { connects } });
    assert.deepEqual([caller, agent], ['Gateway', 'scout']);
    await refused(ask({ claims: { connects } }), 'TEMPER_DELIVERY_TOKEN_INVALID');
    await refused(ask({ token: 'gateway', claims: { connects }, port: 8443 }), 'TEMPER_DELIVERY_TOKEN_INVALID');
    await refused(ask({ token: 'gateway' }), 'TEMPER_DELIVERY_TOKEN_INVALID');
    setup.suspended = true;
    await refused(ask({ token: 'gateway', claims: { connects } }), 'TEMPER_AGENT_SUSPENDED');
  });

  it('the egress proxy reads the agent of a delivery token without the key, and nothing in other texts', () => {
    assert.deepEqual(namedOwner(tokens.sign(CLAIMS)), { namespace: 'team-a', agentUid: 'a-1' });
    for (const text of ['', 'd1', 'd1..', 'd1.x.y', `d1.${Buffer.from('{"namespace":1}').toString('base64url')}.y`]) {
      assert.equal(namedOwner(text), undefined, text);
    }
  });

  it('without a connection of the platform the policy of the agent decides about the host of a call', async () => {
    const connects = { ...HOST, by: 'Policy' } as const;
    await ask({ token: 'gateway', claims: { connects } });
    setup.allowed = [];
    await refused(ask({ token: 'gateway', claims: { connects } }), 'TEMPER_POLICY_DENIED');
  });

  it('a tainted session with private data reaches the hosts of calls that an approver permitted, for their message only', async () => {
    setup.tainted = true;
    setup.hasPrivateData = true;
    const safe = { host: 'safe.example.com' };
    await refused(ask(safe), 'TEMPER_POLICY_DENIED');
    setup.approved = ['safe.example.com:443', 'api.example.com:443'];
    await ask(safe);
    // An approval permits nothing that the policy denies.
    await refused(ask(), 'TEMPER_POLICY_DENIED');
    await refused(ask({ ...safe, claims: { message: 'm-2' } }), 'TEMPER_POLICY_DENIED');
    setup.tainted = false;
    setup.approved = [];
    await ask(safe);
  });

  it('a report charges the bytes of each agent at once, and lets allowed connections stay', async () => {
    assert.deepEqual(await report(10, 0, 32), { ended: [] });
    assert.deepEqual(setup.charged, [{ networkBytes: 42 }]);
    assert.equal(setup.markReads, 1);
  });

  it('a connection of a pod that moved bytes is a use of the web, and one of a tool of a gateway is not', async () => {
    const of = (id: string, message: string, bytes: number, more: Partial<DeliveryTokenClaims> = {}) => ({
      id,
      deliveryToken: tokens.sign({ ...CLAIMS, message, ...more }),
      ...HOST,
      bytes,
    });
    const connects = { ...HOST, by: 'Connection' } as const;
    const connections = [of('c-1', 'm-1', 10), of('c-2', 'm-2', 0), of('c-3', 'm-3', 10, { connects })];
    await reviewConnections({ connections }, deps, op);
    assert.deepEqual(setup.used, ['m-1 web']);
  });

  it('a report waits for no record of a task', async () => {
    deps = { ...deps, recorder: { ...deps.recorder, used: () => new Promise(() => undefined) } };
    assert.deepEqual(await report(10), { ended: [] });
  });

  it('a report ends the connections of a suspended agent, and still charges their bytes', async () => {
    setup.suspended = true;
    // The operator may have taken its pod.
    setup.bound = false;
    const { ended } = await report(10, 5);
    assert.deepEqual(
      ended.map(({ id, code }) => [id, code]),
      [
        ['c-0', 'TEMPER_AGENT_SUSPENDED'],
        ['c-1', 'TEMPER_AGENT_SUSPENDED'],
      ],
    );
    assert.deepEqual(setup.charged, [{ networkBytes: 15 }]);
  });

  it('a report ends connections for every reason for which they would not be allowed now', async () => {
    const codes = async (): Promise<(string | undefined)[]> => (await report(1)).ended.map(({ code }) => code);
    assert.deepEqual(await codes(), []);
    setup.allowed = [];
    assert.deepEqual(await codes(), ['TEMPER_POLICY_DENIED']);
    setup.allowed = ['**.example.com'];
    setup.tainted = true;
    assert.deepEqual(await codes(), ['TEMPER_POLICY_DENIED']);
    setup.tainted = false;
    setup.bound = false;
    assert.deepEqual(await codes(), ['TEMPER_POD_NOT_BOUND']);
    setup.bound = true;
    setup.left = 0;
    assert.deepEqual(await codes(), ['TEMPER_QUOTA_EXCEEDED']);
  });

  it('bytes beyond the quota count, so that the next report ends the connection', async () => {
    assert.deepEqual(await report(5_000), { ended: [] });
    assert.equal(setup.left, -4_000);
    assert.deepEqual(
      (await report(1)).ended.map(({ code }) => code),
      ['TEMPER_QUOTA_EXCEEDED'],
    );
  });

  it('a report with a forged delivery token charges no agent and ends the connection', async () => {
    const connections = [{ id: 'c-0', deliveryToken: 'd1.x.y', ...HOST, bytes: 10 }];
    const { ended } = await reviewConnections({ connections }, deps, op);
    assert.deepEqual([ended.map(({ code }) => code), setup.charged], [['TEMPER_DELIVERY_TOKEN_INVALID'], []]);
  });

  it('a report fails as a whole while the ledger does not respond, so that its bytes are not lost', async () => {
    setup.ledgerFails = true;
    await refused(report(1), 'TEMPER_LEDGER_UNAVAILABLE');
  });
});
