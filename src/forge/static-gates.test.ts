import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestOf } from '../lib/canonical.ts';
import { systemClock } from '../lib/clock.ts';
import type { Json } from '../lib/json.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { createToolView } from '../tools/view.ts';
import {
  aCaller,
  aContext,
  aDecider,
  anOp,
  ApprovingJudge,
  aRequest,
  artifactOf,
  TestRegistry,
} from './forge.testing.ts';
import { createForge } from './forge.ts';
import { inspectArtifact } from './gates/inspect-artifact.ts';
import { createForgeReview } from './review.ts';
import type { ForgeEvidence, RefusedTool, ToolCandidate } from './types.ts';

const noSandbox: Sandbox = { run: () => Promise.reject(new Error('no code may run')) };
const evidence: ForgeEvidence = { tests: [], milliseconds: 1, heapBytes: 1, warnings: [] };
const good = artifactOf(aRequest()) as unknown as { [member: string]: Json };
const sandboxed = (source: string): Json => ({ ...good, implementation: { mode: 'Sandbox', source } });
const composed = (tool: string): Json => ({
  ...good,
  implementation: { mode: 'Compose', steps: [{ name: 'one', tool, inputMapping: '{}' }] },
  limits: { duration: '60s', memory: '128Mi' },
});

const BAD: Readonly<Record<string, readonly [artifact: Json, gate: string, code: string]>> = {
  'no object': [null, 'shape', 'TEMPER_FORGE_SHAPE'],
  'an unknown member': [{ ...good, tier: 'Shared' }, 'shape', 'TEMPER_FORGE_SHAPE'],
  'a missing member': [{ name: 'double' }, 'shape', 'TEMPER_FORGE_SHAPE'],
  'an unknown host function': [
    { ...good, requires: { apis: ['shell'], domains: [], paths: [] } },
    'shape',
    'TEMPER_FORGE_SHAPE',
  ],
  'a schema that is no JSON': [{ ...good, inputSchema: '{' }, 'shape', 'TEMPER_FORGE_SHAPE'],
  'a schema with a member that occurs twice': [
    { ...good, inputSchema: '{"properties":{},"properties":{},"type":"object"}' },
    'shape',
    'TEMPER_FORGE_SHAPE',
  ],
  'an invisible character': [{ ...good, description: 'Doubles\u200b a number.' }, 'shape', 'TEMPER_FORGE_SHAPE'],
  'a reserved name': [{ ...good, name: 'fetch' }, 'shape', 'TEMPER_FORGE_SHAPE'],
  'a duration out of range': [{ ...good, limits: { duration: '99s', memory: '128Mi' } }, 'shape', 'TEMPER_FORGE_SHAPE'],
  'forbidden code': [sandboxed('function execute() { return process.env; }'), 'static', 'TEMPER_FORGE_STATIC'],
  'an undeclared host function': [
    sandboxed('async function execute() { return (await fetch("https://a.test")).status; }'),
    'static',
    'TEMPER_FORGE_STATIC',
  ],
  'a source that does not parse': [sandboxed('function execute( {'), 'static', 'TEMPER_FORGE_SYNTAX'],
  'a source without entry': [sandboxed('const a = 1, b = 2;'), 'static', 'TEMPER_FORGE_STATIC'],
  'a secret': [
    sandboxed(`function execute() { return "${['AKIA', 'Q3EGRMWSPLVH7K2D'].join('')}"; }`),
    'static',
    'TEMPER_FORGE_STATIC',
  ],
  'a step that calls an unknown tool': [composed('nothing'), 'static', 'TEMPER_FORGE_COMPOSE'],
  'a hostile schema': [
    { ...good, inputSchema: '{"allOf":[{"$ref":"#"}],"properties":{},"type":"object"}' },
    'schemas',
    'TEMPER_FORGE_SCHEMA',
  ],
  'an unknown keyword': [{ ...good, outputSchema: '{"tpye":"object"}' }, 'schemas', 'TEMPER_FORGE_EXTRA_FIELD'],
  'a host function beyond the policy': [
    { ...good, requires: { apis: ['fetch'], domains: ['*'], paths: [] } },
    'policy',
    'TEMPER_FORGE_LIMIT_EXCEEDED',
  ],
  'memory beyond the policy': [
    { ...good, limits: { duration: '5s', memory: '1Gi' } },
    'policy',
    'TEMPER_FORGE_LIMIT_EXCEEDED',
  ],
};

type Submitted = Pick<ToolCandidate, 'digest'> & { artifact: Json };

function inspected({ artifact, digest }: Submitted): RefusedTool {
  const forge = createForge({ sandbox: noSandbox, clock: systemClock, schemas: createSchemaCompiler() });
  const result = forge.inspect({ artifact, digest }, aContext());
  assert.ok('accepted' in result, 'the author’s side let it pass');
  return result;
}

/** Reviews with an inspection that went to another thread and back, as clones. */
async function reviewed({ artifact, digest }: Submitted): Promise<RefusedTool> {
  const judge = new ApprovingJudge();
  const review = createForgeReview({
    judge,
    sessionTools: new TestRegistry(),
    inspect: async (submitted) => structuredClone(inspectArtifact(structuredClone(submitted))),
    context: () => ({ decider: aDecider(), view: createToolView(), events: () => {} }),
  });
  const result = await review.submit({ artifact, digest, evidence } as never, aCaller, anOp());
  assert.ok(!result.accepted, 'the review let it pass');
  assert.equal(judge.asked, 0);
  return result;
}

describe('the static gates', () => {
  for (const [what, [artifact, gate, code]] of Object.entries(BAD)) {
    it(`the forge and the review refuse ${what} with the same gate, code and message`, async () => {
      const submitted: Submitted = { artifact, digest: digestOf(artifact) };
      const [one, other] = [inspected(submitted), await reviewed(submitted)];
      assert.deepEqual([one.gate, one.code], [gate, code], one.message);
      assert.deepEqual([other.gate, other.code, other.class, other.message], [gate, code, one.class, one.message]);
    });
  }

  it('the forge and the review refuse an artifact with another digest than the declared one', async () => {
    const submitted: Submitted = { artifact: good, digest: `sha256:${'0'.repeat(64)}` };
    const [one, other] = [inspected(submitted), await reviewed(submitted)];
    assert.deepEqual([one.gate, one.code], ['build', 'TEMPER_PACKAGE_INVALID']);
    assert.deepEqual([other.gate, other.code, other.message], [one.gate, one.code, one.message]);
  });

  it('the forge records each gate that a tool passed before the one that refuses it, and the review only its own', async () => {
    const artifact = { ...good, limits: { duration: '5s', memory: '1Gi' } };
    const submitted: Submitted = { artifact, digest: digestOf(artifact) };
    const gatesOf = ({ gates }: RefusedTool) => gates.map(({ gate }) => gate);
    assert.deepEqual(gatesOf(inspected(submitted)), ['shape', 'static', 'schemas', 'build', 'policy']);
    assert.deepEqual(gatesOf(await reviewed(submitted)), ['policy']);
  });

  it('the inspection of a tool of either mode survives a clone, and the review decides by it alone', async () => {
    for (const artifact of [good, composed('double_of')]) {
      const inspection = inspectArtifact({ artifact, digest: undefined });
      assert.deepEqual(structuredClone(inspection), inspection);
      assert.ok(inspection.open !== undefined);
    }
    const review = createForgeReview({
      judge: new ApprovingJudge(),
      sessionTools: new TestRegistry(),
      inspect: async (submitted) => ({
        ...inspectArtifact(submitted),
        schemas: [{ code: 'TEMPER_FORGE_SCHEMA', message: 'from the worker' }],
      }),
      context: () => ({ decider: aDecider(), view: createToolView(), events: () => {} }),
    });
    const digest = digestOf(good);
    const result = await review.submit({ artifact: good, digest, evidence } as never, aCaller, anOp());
    assert.ok(!result.accepted);
    assert.deepEqual([result.gate, result.message], ['schemas', 'from the worker']);
  });
});
