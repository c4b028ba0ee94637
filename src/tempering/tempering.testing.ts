import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { openAudit } from '../audit/recorded-trail.ts';
import type { AcceptedTool, ForgeCaller, JudgeVerdict } from '../forge/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Model, ModelEvent, ModelRequest, StopReason } from '../models/port.ts';
import { memoryRecordStore, type RecordStore } from '../lib/record-store.ts';
import { artifactDigest } from './registry/serialization.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { openSourceStore, type SourceStore } from './withheld/source-store.ts';
import { openRegistry, type Registry } from './registry/registry.ts';
import type { ExaminationReport, Examiner } from './examination/types.ts';
import type { RegisteredTool } from './types.ts';
import type { ToolUse } from './types.ts';

/** Builders for the tests of this module. */

/** The time at which the tests of this module start. */
export function createFakeClock(start = '2026-03-01T09:00:00.000Z'): FakeClock {
  return new FakeClock(start);
}

export function anOp(): CallOptions {
  return { signal: new AbortController().signal, deadline: Number.MAX_SAFE_INTEGER, key: 'test' };
}

export function anArtifact(name = 'double', changes: Partial<ToolArtifact> = {}): ToolArtifact {
  return {
    name,
    description: 'Doubles a number.',
    inputSchema: '{"properties":{"value":{"type":"number"}},"required":["value"],"type":"object"}',
    outputSchema: '{"properties":{"result":{"type":"number"}},"required":["result"],"type":"object"}',
    implementation: { mode: 'Sandbox', source: 'function execute(input) { return { result: input.value * 2 }; }' },
    tests: [{ input: '{"value":2}', expectedOutput: '{"result":4}' }],
    requires: { apis: [], domains: [], paths: [] },
    limits: { duration: '1s', memory: '64Mi' },
    ...changes,
  };
}

/** A tool of tier Shared forged by agent analyst in team-a, as a registry returns it. */
export function aSharedTool(name: string, changes: Partial<ToolArtifact> = {}): RegisteredTool {
  const artifact = anArtifact(name, changes);
  return {
    object: `tools/${name}`,
    artifact,
    digest: artifactDigest(artifact),
    tier: 'Shared',
    owner: { agent: 'analyst', namespace: 'team-a', session: '' },
    contributors: [],
    verdicts: [],
    authorModel: '',
    sourceWithheld: false,
    acceptedAt: '',
    active: true,
  };
}

export function aVerdict(changes: Partial<JudgeVerdict> = {}): JudgeVerdict {
  return {
    approved: true,
    confidence: 0.93,
    reasoning: 'sound',
    model: 'replay/judge',
    promptDigest: 'sha256:0',
    ...changes,
  };
}

export function anAcceptance(artifact: ToolArtifact = anArtifact(), changes: Partial<AcceptedTool> = {}): AcceptedTool {
  return {
    accepted: true,
    artifact,
    digest: artifactDigest(artifact),
    evidence: { tests: [], milliseconds: 1, heapBytes: 1, warnings: [] },
    verdict: aVerdict(),
    gates: [],
    ...changes,
  };
}

export function aCaller(changes: Partial<ForgeCaller> = {}): ForgeCaller {
  return {
    agent: 'analyst',
    namespace: 'team-a',
    session: 's-1',
    rootMessage: 'm-1',
    authorModel: 'replay/author',
    ...changes,
  };
}

export function aUse(artifact: ToolArtifact, input: Json, changes: Partial<ToolUse> = {}): ToolUse {
  const { agent, namespace, session, rootMessage } = aCaller();
  return {
    agent,
    namespace,
    session,
    rootMessage,
    digest: artifactDigest(artifact),
    evidence: 'observed',
    input,
    succeeded: true,
    milliseconds: 2,
    time: '2026-03-01T09:00:01.000Z',
    ...changes,
  };
}

/** An examiner that finds what `changes` says; by default nothing. */
export function anExaminer(changes: Partial<ExaminationReport> = {}): Examiner {
  return {
    examine: async ({ digest }) => ({ digest, claims: [], checks: [], testers: [], inputs: 0, ...changes }),
  };
}

/** The encrypted store of the sources in these records, with a key for tests. */
export function aSourceStore(records: RecordStore, clock: Clock = createFakeClock()): Promise<SourceStore> {
  return openSourceStore({ records, clock, derive: () => Buffer.alloc(32, 1) });
}

export async function aRegistry(
  records: RecordStore = memoryRecordStore(),
  clock: Clock = createFakeClock(),
): Promise<Registry> {
  const audit = await openAudit({ records, clock });
  const sources = await aSourceStore(records, clock);
  return openRegistry({ records, audit, clock, builtIn: new Set(['file_read']), sources });
}

/** A model that responds with the text or the events that `answer` returns for the request. */
export function scriptedModel(
  answer: (request: ModelRequest) => string | ModelEvent[],
): Model & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async *stream(request) {
      requests.push(request);
      const response = answer(request);
      if (typeof response !== 'string') {
        yield* response;
        return;
      }
      yield { type: 'text', text: response };
      yield anEndEvent(request.model);
    },
    embed: async () => [],
  };
}

export function anEndEvent(model: string, stopReason: StopReason = 'stop'): ModelEvent {
  return { type: 'end', stopReason, usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 }, model };
}

/** The nonce that a reviewer must repeat. */
export function nonceIn(request: ModelRequest): string {
  const text = request.messages[0]?.role === 'user' ? request.messages[0].text : '';
  return /Its member "nonce" must be "([^"]*)"/.exec(text)?.[1] ?? '';
}

/** The response of a reviewer that approves everything, valid for judge and panel. */
export function approveAll(request: ModelRequest, changes: JsonObject = {}): string {
  return JSON.stringify({
    nonce: nonceIn(request),
    lines: [4],
    safety: { passed: true, concerns: [] },
    correctness: { passed: true, failedTests: [] },
    determinism: { likely: true, reasoning: '' },
    bounded: { likely: true, reasoning: '' },
    confidence: 1,
    approved: true,
    reasoning: 'yes',
    ...changes,
  });
}
