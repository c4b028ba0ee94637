import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import type { AuditRecord } from '../audit/port.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { type CallOptions, withTimeout } from '../lib/call-options.ts';
import type { Amounts, Denial, Reservation } from '../ledger/port.ts';
import type { Decider, Decision, PolicyRequest } from '../policy/types.ts';
import type { ApprovalDecision, ApprovalInput } from './approvals.ts';
import type { AgentEvent } from './events.ts';
import type { CallContext, CallerContext, Tool, ToolResult, ToolView } from './contract.ts';
import { type CompletedCall, createInvoker } from './invoker.ts';
import { IN_FORGE } from './forge-test-call.ts';
import type { CallHooks } from './hooks/call-hooks.ts';
import { createLoopGuard } from './loop-guard.ts';
import { createSchemaCompiler } from './json-schema/compiler.ts';
import { createToolView } from './view.ts';

const caller: CallerContext = {
  agent: 'analyst',
  namespace: 'team',
  session: 's-1',
  rootMessage: 'm-1',
  stack: [],
  origin: 'Agent',
};

function anOp(milliseconds = 5_000): CallOptions {
  return { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + milliseconds, key: 'call-1' };
}

function aTool(
  name: string,
  call: (input: Json, context: CallContext) => Promise<Json>,
  digest?: `sha256:${string}`,
): Tool {
  return {
    descriptor: {
      name,
      description: name,
      inputSchema: {
        type: 'object',
        properties: { n: { type: 'number' } },
        required: ['n'],
        additionalProperties: false,
      },
      category: 'other',
      action: 'code:read',
      sideEffects: false,
      locality: 'Local',
      ...(digest === undefined ? {} : { forged: { digest, tier: 'Session' } }),
    },
    call,
  };
}

interface Stubs {
  tools: Tool[];
  decide?: (request: PolicyRequest) => Decision;
  reserve?: (maximum: Amounts) => Reservation | Denial;
  commit?: () => Promise<void>;
  answer?: () => ApprovalDecision;
  /** No decision is made: a call that can be parked is parked. */
  isUndecided?: boolean;
  isUsed?: boolean;
  /** The decision that the request already has. */
  decided?: ApprovalDecision;
  view?: () => ToolView;
  timeout?: number;
  hooks?: CallHooks;
}

const APPROVED: ApprovalDecision = { decision: 'Approve', by: 'user/kim', reason: 'fine' };

/** An invoker with the real schema compiler and loop guard; policy, ledger and approver are stubs. */
function anInvoker(stubs: Stubs) {
  const audited: AuditRecord[] = [];
  const observed: CompletedCall[] = [];
  const asked: ApprovalInput[] = [];
  const events: AgentEvent[] = [];
  let settled = 0;
  const allow: Decision = { effect: 'Allow', rule: 'test', reason: 'allowed', risk: 'low' };
  const decide = stubs.decide ?? (() => allow);
  const decider = { decide } as unknown as Decider;
  const guard = createLoopGuard();
  const view = createToolView(stubs.tools);
  let reserved = 0;
  const invoker = createInvoker({
    view: () => stubs.view?.() ?? view,
    decider: () => decider,
    loopGuard: () => guard,
    ledger: {
      reserve: async (maximum) => {
        reserved += 1;
        return stubs.reserve?.(maximum) ?? { granted: true, id: 'r' };
      },
      commit: async () => {
        settled += 1;
        await stubs.commit?.();
      },
      usage: () => Promise.reject(new Error('not called')),
    },
    approvals: {
      request: async (ask) => {
        asked.push(ask);
        return 'request-1';
      },
      decisionNow: async () => stubs.decided,
      waitForDecision: async () => stubs.answer?.() ?? APPROVED,
      decisionOrPark: async () =>
        stubs.isUndecided === true ? { decision: 'Parked' } : (stubs.answer?.() ?? APPROVED),
      use: async () => {
        if (stubs.isUsed === true) throw new TemperError('TEMPER_APPROVAL_USED', 'used before');
      },
    },
    audit: {
      append: async (record) => {
        audited.push(record);
      },
    },
    schemas: createSchemaCompiler(),
    hooks: stubs.hooks,
    events: (event) => void events.push(event),
    clock: systemClock,
    timeoutOf: () => stubs.timeout ?? 1_000,
    observe: (call) => void observed.push(call),
  });
  return { invoker, audited, observed, asked, events, settled: () => settled, reserved: () => reserved };
}

function codeOf(result: ToolResult): string {
  return result.ok ? 'ok' : result.error.code;
}

const double = aTool('double', async (input) => ({ n: 2 * (input as { n: number }).n }));

describe('the invoker', () => {
  it('a permitted call gets a copy of its arguments and leaves one audit record', async () => {
    const given = { n: 918273645546 };
    const keeper = aTool('keeper', async (input) => {
      (input as { n: number }).n = 0;
      return null;
    });
    const { invoker, audited, observed, settled } = anInvoker({ tools: [double, keeper] });
    const result = await invoker.invoke('double', given, caller, anOp());
    assert.deepEqual(result.ok && result.output, { n: 1836547291092 });
    await invoker.invoke('keeper', given, caller, anOp());
    assert.deepEqual(given, { n: 918273645546 });
    assert.equal(audited.length, 2);
    assert.equal(observed.length, 2);
    assert.equal(settled(), 2);
    assert.ok(!JSON.stringify(audited).includes('918273645546'), 'arguments are not in the record');
  });

  it('the error for an unknown tool suggests the closest name', async () => {
    const { invoker, observed, audited } = anInvoker({ tools: [double] });
    const result = await invoker.invoke('doubel', { n: 1 }, caller, anOp());
    assert.equal(codeOf(result), 'TEMPER_TOOL_NOT_FOUND');
    assert.match(result.ok ? '' : result.error.message, /did you mean "double"/);
    assert.equal(observed.length, 0, 'a call that never reached a tool is not a use');
    assert.equal(audited.length, 1);
  });

  it('arguments that do not match the schema never reach the tool', async () => {
    const { invoker, observed } = anInvoker({ tools: [double] });
    const result = await invoker.invoke('double', { n: 'x' }, caller, anOp());
    assert.equal(codeOf(result), 'TEMPER_TOOL_INPUT_INVALID');
    assert.equal(observed.length, 0);
  });

  it('a denied tool is not listed, and a call of it fails with the rule', async () => {
    const no: Decision = { effect: 'Deny', rule: 'grant.tools', reason: 'not granted', risk: 'low' };
    const { invoker } = anInvoker({ tools: [double], decide: () => no });
    assert.deepEqual(invoker.visible(caller), []);
    const result = await invoker.invoke('double', { n: 1 }, caller, anOp());
    assert.deepEqual(result.ok ? undefined : result.error, {
      code: 'TEMPER_POLICY_DENIED',
      message: 'not granted',
      rule: 'grant.tools',
    });
  });

  it('a listed tool refuses arguments that the policy denies', async () => {
    const decide = (request: PolicyRequest): Decision => {
      const effect = request.kind === 'Tool' && request.arguments !== undefined ? 'Deny' : 'Allow';
      return { effect, rule: 'arguments', reason: 'n is pinned', risk: 'low' };
    };
    const { invoker } = anInvoker({ tools: [double], decide });
    assert.equal(invoker.visible(caller).length, 1);
    assert.equal(codeOf(await invoker.invoke('double', { n: 1 }, caller, anOp())), 'TEMPER_POLICY_DENIED');
  });

  it('an escalated call waits for the approver and fails when the approver denies it', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'high' };
    const yes = anInvoker({ tools: [double], decide: () => ask });
    assert.equal(codeOf(await yes.invoker.invoke('double', { n: 1 }, caller, anOp())), 'ok');
    assert.equal(yes.asked.length, 1);
    const no = anInvoker({
      tools: [double],
      decide: () => ask,
      answer: () => ({ decision: 'Deny', by: 'user/kim', reason: 'not now' }),
    });
    assert.equal(codeOf(await no.invoker.invoke('double', { n: 1 }, caller, anOp())), 'TEMPER_APPROVAL_DENIED');
    assert.equal(no.observed.length, 0);
    assert.equal(no.settled(), 1);
  });

  it('an approved call is refused when the policy denies it or the tool is gone after the wait', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'high' };
    const approve = (): ApprovalDecision => ({ decision: 'Approve', by: 'user/kim', reason: 'fine' });
    let suspended = false;
    const denied = anInvoker({
      tools: [double],
      decide: () => (suspended ? { ...ask, effect: 'Deny', rule: 'policy.suspended' } : ask),
      answer: () => {
        suspended = true;
        return approve();
      },
    });
    const result = await denied.invoker.invoke('double', { n: 1 }, caller, anOp());
    assert.equal(result.ok ? '' : result.error.rule, 'policy.suspended');
    assert.deepEqual([denied.observed.length, denied.reserved(), denied.settled()], [0, 1, 1]);
    const digests = ['a', 'b'].map((letter) => `sha256:${letter.repeat(64)}` as const);
    const forged = (index: number): Tool => aTool('forged', async () => index, digests[index]);
    for (const later of [createToolView([]), createToolView([forged(1)])]) {
      let current = createToolView([forged(0)]);
      const changed = anInvoker({
        tools: [],
        view: () => current,
        decide: () => ask,
        answer: () => {
          current = later;
          return approve();
        },
      });
      const call = await changed.invoker.invoke('forged', { n: 1 }, caller, anOp());
      assert.equal(codeOf(call), 'TEMPER_TOOL_NOT_FOUND');
      assert.equal(changed.observed.length, 0);
    }
  });

  it('an approval does not cover another rule, another risk or changed arguments, and a permission needs none', async () => {
    const asked: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' };
    for (const [later, n, code] of [
      [{ ...asked, rule: 'detector.secret' }, 1, 'TEMPER_APPROVAL_DENIED'],
      [{ ...asked, risk: 'high' }, 1, 'TEMPER_APPROVAL_DENIED'],
      [asked, 2, 'TEMPER_APPROVAL_DENIED'],
      [{ ...asked, reason: 'said in other words' }, 1, 'ok'],
      [{ ...asked, effect: 'Allow', rule: 'grant.tools' }, 1, 'ok'],
    ] as const) {
      let current = asked;
      const input = { n: 1 };
      const { invoker } = anInvoker({
        tools: [double],
        decide: () => current,
        answer: () => {
          current = later;
          input.n = n;
          return { decision: 'Approve', by: 'user/kim', reason: 'fine' };
        },
      });
      assert.equal(codeOf(await invoker.invoke('double', input, caller, anOp())), code, JSON.stringify(later));
    }
  });

  it('a request that is decided already is reported as decided, and not as one that waits', async () => {
    const decide = (): Decision => ({
      effect: 'Escalate',
      rule: 'autonomy',
      reason: 'an approver decides',
      risk: 'low',
    });
    for (const [decided, code, types] of [
      [APPROVED, 'ok', ['approval-decided']],
      [{ ...APPROVED, decision: 'Deny' }, 'TEMPER_APPROVAL_DENIED', ['approval-decided']],
      [undefined, 'ok', ['approval-requested', 'approval-decided']],
    ] as const) {
      const { invoker, events } = anInvoker({ tools: [double], decide, ...(decided === undefined ? {} : { decided }) });
      assert.equal(codeOf(await invoker.invoke('double', { n: 1 }, caller, anOp())), code);
      assert.deepEqual(
        events.map(({ type }) => type).filter((type) => type.startsWith('approval-')),
        types,
      );
    }
  });

  it('an undecided call is parked without a result, a use or a reserved call, and only where the agent itself makes it', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'high' };
    const outer = aTool('outer', async (input, context) => codeOf(await context.invoke('double', input, context.op)));
    const decide = (request: PolicyRequest): Decision =>
      request.kind === 'Tool' && request.name === 'double' ? ask : { ...ask, effect: 'Allow' };
    const { invoker, audited, observed, asked, settled } = anInvoker({
      tools: [double, outer],
      decide,
      isUndecided: true,
    });
    assert.deepEqual(await invoker.invokeOrPark('double', { n: 1 }, caller, anOp()), {
      parked: 'request-1',
      tool: 'double',
    });
    assert.deepEqual([observed.length, settled(), asked[0]?.session], [0, 1, 's-1']);
    assert.deepEqual(
      audited.map(({ action, facts }) => [action, facts['request']]),
      [['tool.call-parked', 'request-1']],
    );
    const nested = await invoker.invokeOrPark('outer', { n: 1 }, caller, anOp());
    assert.equal('ok' in nested && nested.ok && nested.output, 'ok', 'the call of a tool waits');
    assert.equal(asked[1]?.session, undefined);
  });

  it('a parked call is bound to its rule and its risk, so a changed policy asks again', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' };
    let current = ask;
    const { invoker, asked } = anInvoker({ tools: [double], decide: () => current, isUndecided: true });
    for (const next of [ask, { ...ask, reason: 'in other words' }, { ...ask, risk: 'high' as const }]) {
      current = next;
      await invoker.invokeOrPark('double', { n: 1 }, caller, anOp());
    }
    assert.equal(asked[0]?.subject, asked[1]?.subject);
    assert.notEqual(asked[0]?.subject, asked[2]?.subject);
  });

  it('a call whose approval was used before fails without reaching its tool', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' };
    const { invoker, observed } = anInvoker({ tools: [double], decide: () => ask, isUsed: true });
    assert.equal(codeOf(await invoker.invoke('double', { n: 1 }, caller, anOp())), 'TEMPER_APPROVAL_USED');
    assert.equal(observed.length, 0);
  });

  it('no approver is asked about a call that the loop guard or a quota refuses', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'low' };
    const denial = { granted: false, quota: 'q', limit: 1, used: 1, resumesAt: '2026-01-01T00:01:00.000Z' } as const;
    const full = anInvoker({ tools: [double], decide: () => ask, reserve: () => denial });
    assert.equal(codeOf(await full.invoker.invoke('double', { n: 1 }, caller, anOp())), 'TEMPER_QUOTA_EXCEEDED');
    assert.equal(full.asked.length, 0);
    const looping = anInvoker({
      tools: [double],
      decide: () => ask,
      answer: () => ({ decision: 'Deny', by: 'user/kim', reason: 'no' }),
    });
    let code = '';
    for (let turn = 0; turn < 8; turn += 1)
      code = codeOf(await looping.invoker.invoke('double', { n: 1 }, caller, anOp()));
    assert.equal(code, 'TEMPER_LOOP_DETECTED');
    assert.equal(looping.asked.length, 4);
  });

  it('the same tool with other arguments needs another approval', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'high' };
    const { invoker, asked } = anInvoker({ tools: [double], decide: () => ask });
    await invoker.invoke('double', { n: 1 }, caller, anOp());
    await invoker.invoke('double', { n: 2 }, caller, anOp());
    assert.notEqual(asked[0]?.subject, asked[1]?.subject);
  });

  it('the error for a used quota names the quota and the time at which calls resume', async () => {
    const denial: Denial = {
      granted: false,
      quota: 'spec.quotas.toolCallsPerMinute',
      limit: 60,
      used: 60,
      resumesAt: '2026-01-01T00:01:00.000Z',
    };
    const { invoker } = anInvoker({ tools: [double], reserve: () => denial });
    const result = await invoker.invoke('double', { n: 1 }, caller, anOp());
    assert.equal(codeOf(result), 'TEMPER_QUOTA_EXCEEDED');
    assert.match(result.ok ? '' : result.error.message, /60 of 60 .*toolCallsPerMinute.*00:01:00/);
  });

  it('a call of a tool that ignores its deadline times out', async () => {
    const deaf = aTool('deaf', () => new Promise(() => {}));
    const { invoker } = anInvoker({ tools: [deaf], timeout: 30 });
    assert.equal(codeOf(await invoker.invoke('deaf', { n: 1 }, caller, anOp())), 'TEMPER_TOOL_TIMEOUT');
    assert.equal(codeOf(await invoker.invoke('deaf', { n: 2 }, caller, anOp(10))), 'TEMPER_TOOL_TIMEOUT');
  });

  it('a cancelled call and a slow call fail with different codes', async () => {
    const deaf = aTool('deaf', () => new Promise(() => {}));
    const { invoker } = anInvoker({ tools: [deaf] });
    const controller = new AbortController();
    const pending = invoker.invoke('deaf', { n: 1 }, caller, { ...anOp(), signal: controller.signal });
    controller.abort(new Error('enough'));
    assert.equal(codeOf(await pending), 'TEMPER_CANCELLED');
  });

  it('a nested call passes the same checks; recursion and depth are limited', async () => {
    const outer = aTool('outer', async (input, context) => {
      const inner = await context.invoke('double', input, context.op);
      if (!inner.ok) throw new TemperError(inner.error.code, inner.error.message);
      return inner.output;
    });
    const circle = aTool('circle', async (input, context) => {
      const again = await context.invoke('circle', input, context.op);
      return codeOf(again);
    });
    const { invoker, audited } = anInvoker({ tools: [double, outer, circle] });
    const result = await invoker.invoke('outer', { n: 4 }, caller, anOp());
    assert.deepEqual(result.ok && result.output, { n: 8 });
    assert.deepEqual(
      audited.map((record) => record.facts['depth']),
      [1, 0],
    );
    const round = await invoker.invoke('circle', { n: 1 }, caller, anOp());
    assert.equal(round.ok && round.output, 'TEMPER_TOOL_RECURSION');
    const deep = { ...caller, stack: ['a', 'b', 'c', 'd', 'e'] };
    assert.equal(codeOf(await invoker.invoke('double', { n: 1 }, deep, anOp())), 'TEMPER_TOOL_RECURSION');
  });

  it('a pinned tool is called only while it has the pinned digest', async () => {
    const digest = `sha256:${'a'.repeat(64)}` as const;
    const forged = aTool('forged', async () => 1, digest);
    const { invoker } = anInvoker({ tools: [forged] });
    assert.equal(codeOf(await invoker.invoke(`forged@${digest}`, { n: 1 }, caller, anOp())), 'ok');
    const other = `forged@sha256:${'b'.repeat(64)}`;
    assert.equal(codeOf(await invoker.invoke(other, { n: 1 }, caller, anOp())), 'TEMPER_TOOL_NOT_FOUND');
  });

  it('the result of a failed call names the tool without its digest', async () => {
    const { invoker } = anInvoker({ tools: [double] });
    const failed = await invoker.invoke(`gone@sha256:${'a'.repeat(64)}`, { n: 1 }, caller, anOp());
    assert.equal(failed.tool, 'gone');
    assert.ok(!failed.ok);
    assert.doesNotMatch(failed.error.message, /a{64}/);
  });

  it('a call that the deadline of its caller stops times out', async () => {
    const silent = aTool('silent', () => new Promise(() => {}));
    const { invoker } = anInvoker({ tools: [silent], timeout: 60_000 });
    const result = await withTimeout(anOp(), systemClock, 5, (op) => invoker.invoke('silent', { n: 1 }, caller, op));
    assert.equal(codeOf(result), 'TEMPER_TOOL_TIMEOUT');
  });

  it('a call whose reservation cannot be settled fails, and counts as a use', async () => {
    const unavailable = new TemperError('TEMPER_LEDGER_UNAVAILABLE', 'no ledger', { retry: 'backoff' });
    const { invoker, observed } = anInvoker({ tools: [double], commit: () => Promise.reject(unavailable) });
    const result = await invoker.invoke('double', { n: 1 }, caller, anOp());
    assert.equal(codeOf(result), 'TEMPER_LEDGER_UNAVAILABLE');
    assert.equal(observed.length, 1);
  });

  it('the invoker stops repetition without progress', async () => {
    const still = aTool('still', async () => 'same');
    const { invoker } = anInvoker({ tools: [still] });
    const codes: string[] = [];
    for (let turn = 0; turn < 8; turn += 1) codes.push(codeOf(await invoker.invoke('still', { n: 1 }, caller, anOp())));
    assert.equal(codes[0], 'ok');
    assert.equal(codes.at(-1), 'TEMPER_LOOP_DETECTED');
  });

  it('a nested call is reported with its origin and depth, and recorded with its origin; the calls of a forge are not reported', async () => {
    const inner = aTool('inner', async (input, context) => {
      const called = await context.invoke('double', input, { ...context.op, key: `${context.op.key}/1` });
      return called.ok ? called.output : codeOf(called);
    });
    const outer = aTool('outer', async (input, context) => codeOf(await context.invoke('inner', input, context.op)));
    const program: Tool = { ...outer, descriptor: { ...outer.descriptor, name: 'program' }, nestedOrigin: 'Code' };
    const { invoker, audited, events } = anInvoker({ tools: [double, inner, outer, program] });
    await invoker.invoke('outer', { n: 1 }, caller, anOp());
    const shape = (event: AgentEvent): string =>
      'origin' in event ? `${event.type} ${event.tool} ${event.origin} ${event.depth} ${event.id}` : event.type;
    assert.deepEqual(events.map(shape), [
      'tool-call inner Compose 1 call-1',
      'tool-call double Compose 2 call-1/1',
      'tool-result double Compose 2 call-1/1',
      'tool-result inner Compose 1 call-1',
    ]);
    assert.deepEqual(
      audited.map(({ facts }) => [facts['tool'], facts['origin'], facts['depth']]),
      [
        ['double', 'Compose', 2],
        ['inner', 'Compose', 1],
        ['outer', 'Agent', 0],
      ],
    );
    events.length = 0;
    await invoker.invoke('program', { n: 1 }, caller, anOp());
    assert.equal(events.map(shape)[0], 'tool-call inner Code 1 call-1');
    assert.equal(events.map(shape)[1], 'tool-call double Compose 2 call-1/1');
    events.length = 0;
    audited.length = 0;
    await invoker.invoke('program', { n: 1 }, { ...caller, ...IN_FORGE }, anOp());
    assert.deepEqual(events, []);
    assert.deepEqual(
      audited.map(({ facts }) => facts['origin']),
      ['ForgeTest', 'ForgeTest', 'ForgeTest'],
    );
  });

  it('neither the loop guard nor a quota counts the calls of a forge that tests a tool', async () => {
    const still = aTool('still', async () => 'same');
    const outer = aTool('outer', async (input, context) => codeOf(await context.invoke('still', input, context.op)));
    const { invoker, reserved, observed } = anInvoker({ tools: [still, outer] });
    const inForge = { ...caller, ...IN_FORGE };
    for (let run = 0; run < 40; run += 1) {
      const result = await invoker.invoke(run % 2 === 0 ? 'still' : 'outer', { n: 1 }, inForge, anOp());
      assert.ok(result.ok, JSON.stringify(result));
      assert.notEqual(result.output, 'TEMPER_LOOP_DETECTED');
      assert.equal(result.notice, undefined);
    }
    assert.equal(reserved(), 0);
    assert.equal(observed.length, 60);
    assert.equal((await invoker.invoke('outer', { n: 1 }, caller, anOp())).ok, true);
    assert.equal(reserved(), 2, 'a nested call of an ordinary tool is counted');
  });

  it('the message of an unknown error contains no control characters', async () => {
    const rude = aTool('rude', async () => {
      throw new Error('red\u001b[31m\nand more');
    });
    const { invoker } = anInvoker({ tools: [rude] });
    const result = await invoker.invoke('rude', { n: 1 }, caller, anOp());
    assert.equal(codeOf(result), 'TEMPER_TOOL_FAILED');
    assert.ok(!result.ok && !result.error.message.includes('\u001b') && !result.error.message.includes('\n'));
  });
});

describe('a tool view', () => {
  it('a tool view refuses two tools with the same name', () => {
    assert.throws(() => createToolView([double], [double]), TemperError);
  });
});

describe('the hooks of a call', () => {
  const denied = (reason: string) => new TemperError('TEMPER_HOOK_DENIED', reason, { details: { rule: 'hooks.deny' } });

  it('a call that a hook refuses asks no approver, reserves nothing and reaches no tool', async () => {
    const ask: Decision = { effect: 'Escalate', rule: 'autonomy', reason: 'an approver decides', risk: 'high' };
    const hooks = { beforeCall: () => Promise.reject(denied('not on Mondays')), afterCall: async () => undefined };
    const { invoker, asked, observed, reserved } = anInvoker({ tools: [double], decide: () => ask, hooks });
    const result = await invoker.invoke('double', { n: 1 }, caller, anOp());
    assert.deepEqual(result.ok ? undefined : result.error, {
      code: 'TEMPER_HOOK_DENIED',
      message: 'not on Mondays',
      rule: 'hooks.deny',
    });
    assert.deepEqual([asked.length, observed.length, reserved()], [0, 0, 0]);
  });

  it('a call that the policy denies, or whose arguments are invalid, is shown to no hook before it', async () => {
    let shown = 0;
    const hooks: CallHooks = { beforeCall: async () => void (shown += 1), afterCall: async () => undefined };
    const no: Decision = { effect: 'Deny', rule: 'arguments', reason: 'pinned', risk: 'low' };
    const decide = (request: PolicyRequest): Decision =>
      request.kind === 'Tool' && request.arguments !== undefined ? no : { ...no, effect: 'Allow' };
    const { invoker } = anInvoker({ tools: [double], decide, hooks });
    assert.equal(codeOf(await invoker.invoke('double', { n: 1 }, caller, anOp())), 'TEMPER_POLICY_DENIED');
    assert.equal(codeOf(await invoker.invoke('double', { n: 'x' }, caller, anOp())), 'TEMPER_TOOL_INPUT_INVALID');
    assert.equal(shown, 0);
  });

  it('repeated refusals of a hook are repetitions for the loop guard', async () => {
    const hooks = { beforeCall: () => Promise.reject(denied('no')), afterCall: async () => undefined };
    const { invoker } = anInvoker({ tools: [double], hooks });
    const codes: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      codes.push(codeOf(await invoker.invoke('double', { n: 1 }, caller, anOp())));
    }
    assert.deepEqual([codes[0], codes.at(-1)], ['TEMPER_HOOK_DENIED', 'TEMPER_LOOP_DETECTED']);
  });

  it('a hook sees the result of a call, and one that must not fail and does ends the message', async () => {
    const results: boolean[] = [];
    const afterCall: CallHooks['afterCall'] = async (_, { ok }) => void results.push(ok);
    const { invoker } = anInvoker({ tools: [double], hooks: { beforeCall: async () => undefined, afterCall } });
    await invoker.invoke('double', { n: 1 }, caller, anOp());
    await invoker.invoke('double', { n: 'x' }, caller, anOp());
    assert.deepEqual(results, [true, false]);
    const failing = { beforeCall: async () => undefined, afterCall: () => Promise.reject(new Error('must not fail')) };
    const strict = anInvoker({ tools: [double], hooks: failing });
    await assert.rejects(strict.invoker.invoke('double', { n: 1 }, caller, anOp()), /must not fail/);
  });

  it('equal calls of a hook are no loop, and a quota counts them', async () => {
    const { invoker, reserved } = anInvoker({ tools: [double] });
    const hook: CallerContext = { ...caller, origin: 'Hook' };
    for (let index = 0; index < 40; index += 1) {
      assert.equal(codeOf(await invoker.invoke('double', { n: 1 }, hook, anOp())), 'ok');
    }
    assert.equal(reserved(), 40);
  });
});
