import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openAudit } from '../../src/audit/recorded-trail.ts';
import type { AuditTrail } from '../../src/audit/port.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ERROR_CODES } from '../../src/lib/error-codes.ts';
import { TemperError } from '../../src/lib/errors.ts';
import { memoryRecordStore } from '../../src/lib/record-store.ts';
import type { Decider } from '../../src/policy/types.ts';
import type { Job } from '../../src/sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../src/sandbox/supervisor.ts';
import type { CallerContext, Tool } from '../../src/tools/contract.ts';
import { deniedHostCalls } from '../../src/tools/host/host-calls.ts';
import { createInvoker } from '../../src/tools/invoker.ts';
import { createLoopGuard } from '../../src/tools/loop-guard.ts';
import { createSchemaCompiler } from '../../src/tools/json-schema/compiler.ts';
import { createToolView } from '../../src/tools/view.ts';
import type { Payload } from '../fixtures/adversarial/payload.ts';
import { PAYLOADS } from '../fixtures/adversarial/payloads.ts';
import { callOptions } from '../support/call-options.ts';

/** The only facts that the audit record of a failed call may contain. */
const FACTS = ['code', 'depth', 'inputDigest', 'milliseconds', 'origin', 'rootMessage', 'session', 'tool'];

/** Calls every payload as an agent calls a tool. Each call must have one result with a known code and one audit record. */
describe('hostile tools called through the invoker', () => {
  let sandbox: Supervisor;
  let audit: AuditTrail;
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock, warm: 2 });
    audit = await openAudit({ records: memoryRecordStore(), clock: systemClock });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  function toolOf(payload: Payload): Tool {
    const limits = {
      durationMilliseconds: 1_000,
      memoryBytes: 64 * 1_048_576,
      outputBytes: 262_144,
      hostCalls: 50,
      hostBytes: 262_144,
    };
    return {
      descriptor: {
        name: 'hostile',
        description: 'hostile',
        inputSchema: {},
        category: 'code_execution',
        action: 'code:read',
        sideEffects: false,
        locality: 'Local',
      },
      async call(input, { op }) {
        const job: Job = {
          language: 'javascript',
          source: payload.source,
          input,
          apis: payload.apis ?? [],
          limits: { ...limits, ...payload.limits },
        };
        const outcome = await sandbox.run(job, deniedHostCalls, op);
        if (!outcome.ok) throw new TemperError(outcome.code, outcome.message);
        return outcome.output;
      },
    };
  }

  function invokerOf(payload: Payload) {
    const view = createToolView([toolOf(payload)]);
    const decider = {
      decide: () => ({ effect: 'Allow', rule: 'test', reason: '', risk: 'low' }),
    } as unknown as Decider;
    return createInvoker({
      view: () => view,
      decider: () => decider,
      loopGuard: () => createLoopGuard(),
      ledger: {
        reserve: () => Promise.resolve({ granted: true, id: 'r' }),
        commit: () => Promise.resolve(),
        usage: () => Promise.reject(new Error('not used')),
      },
      approvals: {
        request: () => Promise.reject(new Error('not used')),
        decisionNow: () => Promise.reject(new Error('not used')),
        waitForDecision: () => Promise.reject(new Error('not used')),
        decisionOrPark: () => Promise.reject(new Error('not used')),
        use: () => Promise.reject(new Error('not used')),
      },
      audit,
      schemas: createSchemaCompiler(),
      events: () => {},
      clock: systemClock,
      timeoutOf: () => 60_000,
      observe: () => undefined,
    });
  }

  it(`every call leaves one record with a known code and no text of the tool (${PAYLOADS.length} payloads)`, async () => {
    const caller: CallerContext = {
      agent: 'a',
      namespace: 'n',
      session: 's',
      rootMessage: 'm',
      stack: [],
      origin: 'Agent',
    };
    for (const [index, payload] of PAYLOADS.entries()) {
      const result = await invokerOf(payload).invoke('hostile', payload.input ?? {}, caller, callOptions());
      const records = await audit.records();
      assert.equal(records.length, index + 1, payload.name);
      const last = records.at(-1);
      assert.equal(last?.action, result.ok ? 'tool.called' : 'tool.call-failed', payload.name);
      if (result.ok) continue;
      assert.ok(Object.hasOwn(ERROR_CODES, result.error.code), result.error.code);
      assert.equal(last?.facts['code'], result.error.code, payload.name);
      assert.deepEqual(
        Object.keys(last?.facts ?? {}).sort(),
        FACTS,
        `${payload.name}: the record holds more than facts`,
      );
    }
  });
});
