import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { pollValue } from '../../../test/support/poll.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { AuditRecord } from '../../audit/port.ts';
import type { BrokeredCallResult } from '../../gateway-api/brokered/brokered-schemas.ts';
import type { Digest } from '../../lib/canonical.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { createDecider } from '../../policy/decider.ts';
import { aSnapshot } from '../../policy/policy.testing.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { AuthorizedDelivery } from '../delivery/authorize.ts';
import { type BrokeredCallDeps, callBrokeredTool, type RequestedCall } from './call.ts';
import { CallShares } from '../shares/call-shares.ts';
import type { BrokeredTool } from './port.ts';
import { MinuteCounts } from '../http/limits/minute-counts.ts';
import { RecentCalls } from './recent-calls.ts';

const DEFINITION: Digest = `sha256:${'1'.repeat(64)}`;

/** What a test changes, and what it observes. */
interface Setup {
  work: () => Promise<Json>;
  sideEffects: boolean;
  requests: PolicyRequest[];
  network: string[];
  approved: boolean;
  hasPrivateData: boolean;
  tainted: boolean;
  /** Whether the session keeps its mark. */
  marks: boolean;
  remainingTool: string;
  executed: number;
  taints: number;
  privateMarks: number;
  category: ToolDescriptor['category'];
  audited: AuditRecord[];
  /** The action whose records the audit log does not store. */
  unrecordable: string | undefined;
  /** The category of each recorded use, with its message. */
  used: string[];
}

describe('a call of a tool that the gateway executes', () => {
  const schemas = createSchemaCompiler();
  let setup: Setup;
  let deps: BrokeredCallDeps;

  beforeEach(() => {
    setup = {
      work: async () => ({ found: 1 }),
      sideEffects: false,
      requests: [],
      network: [],
      approved: false,
      hasPrivateData: false,
      tainted: false,
      marks: true,
      remainingTool: 'other',
      executed: 0,
      taints: 0,
      privateMarks: 0,
      category: 'web',
      audited: [],
      unrecordable: undefined,
      used: [],
    };
    const tool = (): BrokeredTool => ({
      definition: DEFINITION,
      descriptor: {
        name: 'find',
        description: 'Finds.',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
        outputSchema: { type: 'object', properties: { found: { type: 'integer' } }, required: ['found'] },
        category: setup.category,
        action: 'code:read',
        sideEffects: setup.sideEffects,
        hosts: ['api.example.com'],
        locality: 'Brokered',
        ...(setup.category === 'web' ? { resultOrigin: 'Web' } : {}),
      },
      requests: () => setup.requests,
      execute: async () => {
        setup.executed += 1;
        return setup.work();
      },
    });
    const keys = new Set<string>();
    const stored = (record: AuditRecord): number => {
      if (record.action === setup.unrecordable) throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'no leader');
      return setup.audited.push(record);
    };
    deps = {
      clock: systemClock,
      log: { error: () => undefined },
      metrics: { count: () => undefined, observe: () => undefined },
      draining: NEVER_ABORTED,
      schemas,
      shares: new CallShares({ agent: 2, namespace: 2, all: 4 }),
      recent: new RecentCalls<BrokeredCallResult>(systemClock),
      brokered: { list: () => [tool()], find: (_: string, name: string) => (name === 'find' ? tool() : undefined) },
      directory: {
        policy: () => undefined,
        decider: (_: object, tainted: boolean, { hasPrivateData = false } = {}) =>
          createDecider(
            aSnapshot({
              agent: { grants: { tools: ['*'], network: setup.network } },
              policy: {
                egress: { allow: ['**'] },
                tools: { allow: ['find'] },
                tainted: { tools: [setup.remainingTool] },
              },
              tainted,
              hasPrivateData,
            }),
          ),
      },
      sessions: {
        tainted: async () => setup.tainted,
        marks: async () => ({ tainted: setup.tainted, hasPrivateData: setup.hasPrivateData }),
      },
      sessionsOf: () => ({
        taint: async () => {
          setup.taints += 1;
          setup.tainted = setup.marks;
        },
        markPrivate: async () => {
          setup.privateMarks += 1;
          setup.hasPrivateData = true;
        },
      }),
      approvals: { permits: async () => setup.approved },
      audit: {
        append: async (_source: object, record: AuditRecord) => stored(record),
        appendFirst: async (_source: object, record: AuditRecord, key: string) => {
          stored(record);
          return keys.size < keys.add(key).size;
        },
      },
      recorder: {
        used: async ({ message }: { message: string }, category: string) =>
          void setup.used.push(`${message} ${category}`),
      },
      callsInMinute: new MinuteCounts(systemClock),
    } as unknown as BrokeredCallDeps;
  });

  const delivery = {
    claims: {
      agentUid: 'a-1',
      agent: 'scout',
      namespace: 'team-a',
      session: 's-1',
      message: 'm-1',
      root: 'm-1',
      deadline: new Date(Date.now() + 600_000).toISOString(),
    },
    state: {
      ancestors: [],
      uid: 'a-1',
      agent: { metadata: { name: 'scout' }, spec: { quotas: { toolCallsPerMinute: 3 } } },
      policy: { metadata: { uid: 'p' }, spec: {} },
    },
  } as unknown as AuthorizedDelivery;
  const call = async (change: Partial<RequestedCall> = {}, of = delivery): Promise<BrokeredCallResult> => {
    const requested: RequestedCall = {
      tool: 'find',
      definition: DEFINITION,
      input: { text: 'a' },
      timeoutMs: 30_000,
      key: 'k-1',
      isUnanswered: false,
      disconnected: NEVER_ABORTED,
      ...change,
    };
    return (await callBrokeredTool(of, requested, deps)).result;
  };
  const refused = (code: ErrorCode, work: Promise<unknown>, words = /./): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      return true;
    });
  const failed = (code: ErrorCode, result: BrokeredCallResult, words: RegExp): void => {
    assert.ok('error' in result, JSON.stringify(result));
    assert.equal(result.error.code, code);
    assert.match(result.error.message, words);
  };

  it('a permitted call taints the session, is recorded, and gives its output', async () => {
    assert.deepEqual(await call(), { output: { found: 1 } });
    assert.deepEqual([setup.executed, setup.taints], [1, 1]);
    const [record] = setup.audited;
    assert.deepEqual(
      [record?.action, record?.actor, record?.evidence, record?.subject, record?.facts['outcome']],
      ['tool.brokered', 'agent/scout', 'observed', 'find', 'ok'],
    );
    assert.doesNotMatch(JSON.stringify(record), /"text"|found/);
  });

  it('the category of a call that succeeded counts for its message, and neither a failed nor a refused call does', async () => {
    setup.category = 'database';
    await call();
    setup.work = async () => {
      throw new TemperError('TEMPER_DATABASE_QUERY_FAILED', 'no such table');
    };
    failed('TEMPER_DATABASE_QUERY_FAILED', await call({ key: 'k-2' }), /no such table/);
    await refused('TEMPER_TOOL_INPUT_INVALID', call({ key: 'k-3', input: { text: 1 } }));
    assert.deepEqual(setup.used, ['m-1 database']);
  });

  it('the rows of a database make the data of the session private before the pod gets them, once, and taint it when the policy says so', async () => {
    setup.category = 'database';
    setup.work = async () => {
      assert.equal(setup.privateMarks, 1, 'the mark is older than the answer');
      return { found: 1 };
    };
    assert.ok('output' in (await call()));
    assert.ok('output' in (await call({ key: 'k-2' })));
    assert.deepEqual([setup.privateMarks, setup.taints], [1, 0]);
    const { state, claims } = delivery;
    const wary = { spec: { tainted: { sources: ['Database'] }, privateData: { sources: [] } } };
    const strict = { claims, state: { ...state, policy: wary } } as unknown as AuthorizedDelivery;
    setup.hasPrivateData = false;
    await call({ key: 'k-3' }, strict);
    assert.deepEqual([setup.privateMarks, setup.taints], [1, 1]);
  });

  it('a call for another definition, or of no tool, is not executed', async () => {
    await refused('TEMPER_TOOL_NOT_FOUND', call({ definition: `sha256:${'2'.repeat(64)}` }), /definition has changed/);
    await refused('TEMPER_TOOL_NOT_FOUND', call({ tool: 'other' }), /no tool of this gateway/);
    assert.equal(setup.executed, 0);
  });

  it('wrong arguments, a host that the agent may not reach and a used quota refuse the call before it starts', async () => {
    await refused('TEMPER_TOOL_INPUT_INVALID', call({ input: { text: 1 } }));
    setup.requests = [{ kind: 'Network', host: 'api.example.com', port: 443 }];
    await refused('TEMPER_POLICY_DENIED', call(), /api\.example\.com/);
    setup.network = ['api.example.com'];
    assert.ok('output' in (await call()));
    setup.tainted = false;
    setup.marks = false;
    for (const key of ['k-2', 'k-3']) assert.ok('output' in (await call({ key })));
    await refused('TEMPER_QUOTA_EXCEEDED', call({ key: 'k-4' }), /toolCallsPerMinute/);
    assert.equal(setup.executed, 3);
  });

  it('what the gateway knows of the taint counts, whatever the pod knows', async () => {
    setup.tainted = true;
    await refused('TEMPER_POLICY_DENIED', call());
    assert.equal(setup.executed, 0);
  });

  it('what a session with private data and untrusted content sends to the host needs a used approval', async () => {
    Object.assign(setup, { tainted: true, hasPrivateData: true, remainingTool: 'find' });
    await refused(
      'TEMPER_POLICY_DENIED',
      call(),
      /may send to api\.example\.com, and the session contains private data/,
    );
    assert.equal(setup.executed, 0);
    setup.approved = true;
    assert.ok('output' in (await call()));
  });

  it('a failure is the result of an executed call, and taints as well', async () => {
    setup.work = () => Promise.reject(new TemperError('TEMPER_FETCH_FAILED', 'no\u001b[2J answer'));
    failed('TEMPER_FETCH_FAILED', await call(), /^no\\u001b\[2J answer$|^no.*answer$/);
    setup.tainted = false;
    setup.work = () => Promise.reject(new RangeError('oops'));
    failed('TEMPER_TOOL_FAILED', await call({ key: 'k-2' }), /"find" failed: oops/);
    assert.deepEqual(
      [setup.taints, setup.audited.map(({ facts }) => facts['outcome'])],
      [2, ['TEMPER_FETCH_FAILED', 'TEMPER_TOOL_FAILED']],
    );
  });

  it('an output that breaks the schema, or is too large, is not given', async () => {
    setup.work = async () => ({ found: 'x' });
    failed('TEMPER_TOOL_OUTPUT_INVALID', await call(), /breaks its schema/);
    setup.tainted = false;
    setup.work = async () => 'a'.repeat(1_000_001);
    failed('TEMPER_TOOL_OUTPUT_INVALID', await call({ key: 'k-2' }), /1000003 characters/);
  });

  it('a call ends when the time of its caller has passed', async () => {
    setup.work = () => new Promise(() => undefined);
    failed('TEMPER_TOOL_TIMEOUT', await call({ timeoutMs: 20 }), /did not answer in time/);
  });

  it('a repeated request gets the first answer, and the call runs once', async () => {
    const first = Promise.withResolvers<Json>();
    setup.work = () => first.promise;
    const both = [call(), call({ isUnanswered: true })];
    first.resolve({ found: 7 });
    assert.deepEqual(await Promise.all(both), [{ output: { found: 7 } }, { output: { found: 7 } }]);
    assert.deepEqual(await call({ isUnanswered: true }), { output: { found: 7 } });
    assert.equal(setup.executed, 1);
    setup.tainted = false;
    await refused('TEMPER_REQUEST_INVALID', call({ input: { text: 'b' } }), /belongs to another call/);
  });

  it('a request that another gateway may have executed is not executed again when the tool has side effects', async () => {
    setup.sideEffects = true;
    await refused('TEMPER_TOOL_OUTCOME_UNKNOWN', call({ isUnanswered: true }), /may have had its effect/);
    assert.equal(setup.executed, 0);
    setup.sideEffects = false;
    assert.ok('output' in (await call({ isUnanswered: true })));
  });

  it('a call with side effects whose result cannot be recorded has its effect once, and is answered', async () => {
    Object.assign(setup, { sideEffects: true, remainingTool: 'find', unrecordable: 'tool.brokered' });
    const answers = [await call().catch(String), await call().catch(String)];
    assert.equal(setup.executed, 1);
    assert.deepEqual(answers, [{ output: { found: 1 } }, { output: { found: 1 } }]);
    assert.deepEqual(setup.used, ['m-1 web']);
  });

  it('a call with side effects that cannot be recorded before it starts has no effect', async () => {
    Object.assign(setup, { sideEffects: true, remainingTool: 'find', unrecordable: 'tool.call-started' });
    await refused('TEMPER_BUS_UNAVAILABLE', call());
    assert.equal(setup.executed, 0);
    setup.unrecordable = undefined;
    assert.ok('output' in (await call()));
    assert.equal(setup.executed, 1);
    assert.deepEqual(
      setup.audited.map(({ action, facts }) => [action, facts['outcome']]),
      [
        ['tool.call-started', undefined],
        ['tool.brokered', 'ok'],
      ],
    );
  });

  it('a call with side effects that another gateway started is not executed again', async () => {
    Object.assign(setup, { sideEffects: true, remainingTool: 'find' });
    await call();
    deps.recent = new RecentCalls<BrokeredCallResult>(systemClock);
    await refused('TEMPER_TOOL_OUTCOME_UNKNOWN', call(), /may have had its effect/);
    assert.ok('output' in (await call({ key: 'k-2' })));
    assert.equal(setup.executed, 2);
  });

  it('a pod does not get the answer of a call without side effects that cannot be recorded', async () => {
    Object.assign(setup, { remainingTool: 'find', unrecordable: 'tool.brokered' });
    await refused('TEMPER_BUS_UNAVAILABLE', call());
    setup.unrecordable = undefined;
    assert.ok('output' in (await call()));
    assert.deepEqual([setup.executed, setup.audited.length], [2, 1]);
  });

  it('an agent cannot have more calls in work than its share', async () => {
    const open = Promise.withResolvers<Json>();
    setup.work = () => open.promise;
    setup.marks = false;
    const running = [call({ key: 'k-1' }), call({ key: 'k-2' })];
    await pollValue(
      'the calls',
      () => setup.executed,
      (executed) => executed === 2,
    );
    await refused('TEMPER_RATE_LIMITED', call({ key: 'k-3' }), /2 calls of the agent are in work/);
    open.resolve({ found: 1 });
    await Promise.all(running);
    assert.ok('output' in (await call({ key: 'k-3' })));
  });
});
