import { join } from 'node:path';
import { createRecordMemory } from '../agent/tools/memory.ts';
import { createRecordSessionStore } from '../agent/session/session-store.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { openAudit } from '../audit/recorded-trail.ts';
import { openLedgerBook } from '../ledger/ledger.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../lib/record-store.ts';
import type { Model, ModelEvent, ModelRequest } from '../models/port.ts';
import { createSafeFetch, type SafeFetch } from '../net/fetch.ts';
import { createSupervisor } from '../sandbox/supervisor.ts';
import type { LocalLifecyclePorts } from '../tempering/lifecycle/ports.ts';
import { openRegistry } from '../tempering/registry/registry.ts';
import type { ApprovalInput } from '../tools/approvals.ts';
import type { AgentEvent } from '../tools/events.ts';
import { builtInNames } from './built-in.ts';
import { createEngine } from './engine.ts';
import type { EnginePorts } from './ports.ts';

/** Fixtures for the tests of the engine. */

const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

/** Judges and reviewers approve every request with a nonce; other requests get the response of the test. */
function scriptedModel(respond: (request: ModelRequest) => ModelEvent[]): Model {
  const yes = (nonce: string): string =>
    JSON.stringify({
      nonce,
      lines: [4],
      safety: { passed: true, concerns: [] },
      correctness: { passed: true, failedTests: [] },
      determinism: { likely: true, reasoning: '' },
      bounded: { likely: true, reasoning: '' },
      confidence: 0.95,
      approved: true,
      reasoning: 'fine',
    });
  return {
    async *stream(request) {
      const asked = request.messages.at(-1);
      const nonce = /-----BEGIN (\S+)-----/.exec(asked?.role === 'user' ? asked.text : '')?.[1];
      if (nonce === undefined) yield* respond(request);
      else {
        yield { type: 'text', text: yes(nonce) };
        yield { type: 'end', stopReason: 'stop', usage, model: request.model };
      }
    },
    embed: () => Promise.reject(new Error('embeddings are not used')),
  };
}

const AGENT: AgentSpec = {
  trustPolicyRef: { name: 'p' },
  model: { primary: 'test/author' },
  prompt: { system: 'You test.' },
  grants: { tools: ['file_read', 'forge_tool', 'twice', 'chain', 'file_write'] },
  forge: { enabled: true, modes: ['Compose', 'Sandbox'] },
};
const POLICY: TrustPolicySpec = {
  level: { initial: 'restricted' },
  models: { judge: 'test/judge', reviewers: ['test/safety', 'test/correctness'] },
  promotion: { toAgent: { minSuccessfulUses: 3, minDistinctInputs: 3 } },
};

/** What an engine of these tests needs from outside. */
export interface EngineSetup {
  /** By default the state folder in the workspace. */
  protectedPaths?: readonly string[];
  workspace: string;
  sandbox: EnginePorts['sandbox'];
}

export interface EngineChanges {
  agent?: Partial<AgentSpec>;
  policy?: Partial<TrustPolicySpec>;
  quotas?: { toolCallsPerMinute: number };
  level?: string;
  fetch?: SafeFetch;
  /** The text of the model's answers to requests that are no reviews. */
  respond?: (request: ModelRequest) => string;
  /** The events of those answers, in place of `respond`. */
  answer?: (request: ModelRequest) => ModelEvent[];
  /** In place of `answer`: such as one over the wire format of a provider. */
  model?: Model;
  onUse?: LocalLifecyclePorts['onUse'];
  onSucceeded?: LocalLifecyclePorts['onSucceeded'];
  records?: RecordStore;
  /** What an approver decides. Default `Deny`. */
  decision?: 'Approve' | 'Deny';
  /** Other agents, the web and skills, for the tools that reach them. */
  agents?: Pick<
    EnginePorts,
    | 'bus'
    | 'tasks'
    | 'children'
    | 'schedules'
    | 'events'
    | 'web'
    | 'skills'
    | 'catalog'
    | 'externalTools'
    | 'usedTogether'
    | 'hybridSearch'
    | 'terminal'
  >;
}

function modelOf({ model, answer, respond }: EngineChanges): Model {
  const responding = (request: ModelRequest): ModelEvent[] => [
    ...(respond === undefined ? [] : [{ type: 'text' as const, text: respond(request) }]),
    { type: 'end', stopReason: 'stop', usage, model: 'x' },
  ];
  return model ?? scriptedModel(answer ?? responding);
}

/** An engine over records in memory, with its registry and everything that it reported. */
export async function anEngine(setup: EngineSetup, changes: EngineChanges = {}) {
  const { workspace, sandbox } = setup;
  const records = changes.records ?? memoryRecordStore();
  const clock = systemClock;
  const audit = await openAudit({ records, clock });
  const registry = await openRegistry({ records, audit, clock, builtIn: builtInNames() });
  const book = await openLedgerBook(records, clock);
  const events: AgentEvent[] = [];
  const asked: ApprovalInput[] = [];
  const model = modelOf(changes);
  const engine = createEngine(
    {
      clock,
      ids: ulids,
      models: { model, withFallbacks: () => model, resolve: (name) => name, contextTokens: () => 100_000 },
      sandbox,
      ledger: book.ledger([{ name: 'agent', quotas: changes.quotas ?? {}, prefix: 'spec.quotas.' }]),
      sessions: createRecordSessionStore(records, clock, { agent: 'a', namespace: 'n' }),
      memory: createRecordMemory(records, 'memory'),
      audit,
      approvals: {
        request: async (ask) => {
          asked.push(ask);
          return `request-${asked.length}`;
        },
        decisionNow: async () => undefined,
        waitForDecision: async () => ({ decision: changes.decision ?? 'Deny', by: 'user/kim', reason: 'no' }),
        decisionOrPark: async () => ({ decision: 'Parked' }),
        use: async () => undefined,
      },
      tools: registry,
      tempering: {
        registry,
        audit,
        records,
        ...(changes.onUse === undefined ? {} : { onUse: changes.onUse }),
        ...(changes.onSucceeded === undefined ? {} : { onSucceeded: changes.onSucceeded }),
        openFreshSandbox: async () => {
          const fresh = await createSupervisor({ clock, maxRunners: 1 });
          return { sandbox: fresh, close: async () => fresh[Symbol.asyncDispose]() };
        },
      },
      ...changes.agents,
      fetch: changes.fetch ?? createSafeFetch({ clock }),
      workspace,
      protectedPaths: setup.protectedPaths ?? [join(workspace, '.temper')],
    },
    {
      name: 'a',
      namespace: 'n',
      spec: { ...AGENT, ...changes.agent },
      policy: { name: 'p', spec: { ...POLICY, ...changes.policy } },
      level: changes.level ?? 'restricted',
    },
    (event) => events.push(event),
  );
  const call = (tool: string, input: Json, session = 's-1') => engine.invoke(tool, input, session, anOp());
  return { engine, registry, records, events, audit, asked, call };
}

export function anOp(): CallOptions {
  return {
    signal: new AbortController().signal,
    deadline: systemClock.monotonic() + 60_000,
    key: ulids.next('k'),
  };
}
