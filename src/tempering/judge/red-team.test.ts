import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createForge, type Forge, type ForgeContext } from '../../forge/forge.ts';
import { createForgeReview } from '../../forge/review.ts';
import type { ToolCandidate, ForgeCaller, ForgeResult, RefusedTool } from '../../forge/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ModelRequest } from '../../models/port.ts';
import { createDecider } from '../../policy/decider.ts';
import { aSnapshot } from '../../policy/policy.testing.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Tool } from '../../tools/contract.ts';
import { createToolView } from '../../tools/view.ts';
import { createJudge } from './judge.ts';
import { createPanel } from './panel.ts';
import type { Registry } from '../registry/registry.ts';
import { aCaller, anOp, aRegistry, nonceIn, approveAll, scriptedModel } from '../tempering.testing.ts';

/** A forge request that tries to manipulate its reviewers. */
interface Attack {
  id: string;
  /** Texts that its author wants a reviewer to read. */
  injected: string[];
  /** Result of the deterministic gates alone: `accepted`, or the code of the refusal. */
  gates: string;
  request: JsonObject;
}

const FOLDER = fileURLToPath(new URL('../../../test/fixtures/red-team/', import.meta.url));
const CLASSES = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

function attacksOf(file: string): Attack[] {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Attack[];
}

/** An agent that may forge in both modes, without any host function. */
const decider = createDecider(
  aSnapshot({
    agent: { forge: { enabled: true, modes: ['Compose', 'Sandbox'] } },
    policy: { forge: { limits: { duration: '1s' } } },
  }),
);

let supervisor: Supervisor;
let forge: Forge;
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 2 });
  forge = createForge({ sandbox: supervisor, clock: systemClock, schemas: createSchemaCompiler() });
});
after(() => supervisor[Symbol.asyncDispose]());

/** The only built-in tool; its name is reserved. */
const fileRead: Tool = {
  descriptor: {
    name: 'file_read',
    description: 'Reads a file.',
    inputSchema: {},
    category: 'file_system',
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
  },
  call: async () => null,
};

function context(): ForgeContext {
  return {
    decider,
    view: createToolView([fileRead]),
    invoke: async (tool) => ({
      ok: false,
      tool,
      error: { code: 'TEMPER_TOOL_NOT_FOUND', message: 'none' },
      milliseconds: 0,
    }),
    events: () => undefined,
    hostCalls: () => ({
      call: () => Promise.reject(new TemperError('TEMPER_HOST_CALL_DENIED', 'host calls are denied in this test')),
    }),
    op: { ...anOp(), deadline: systemClock.monotonic() + 60_000 },
  };
}

interface ReviewFixture {
  registry: Registry;
  requests: ModelRequest[];
  submit(candidate: ToolCandidate, caller: ForgeCaller): Promise<ForgeResult>;
}

/** The complete review of a forge, with a judge that approves everything. */
async function approvingReview(): Promise<ReviewFixture> {
  const registry = await aRegistry();
  const model = scriptedModel(approveAll);
  let nonces = 0;
  const judge = createJudge({
    model,
    judgeModel: 'replay/judge',
    clock: systemClock,
    nonce: () => `nonce-${(nonces += 1)}`,
  });
  const review = createForgeReview({
    judge,
    sessionTools: registry,
    context: () => ({ decider, view: createToolView(), events: () => undefined }),
  });
  return {
    registry,
    requests: model.requests,
    submit: (candidate, caller) => review.submit(candidate, caller, context().op),
  };
}

function promptOf(request: ModelRequest | undefined): string {
  const [message] = request?.messages ?? [];
  return message?.role === 'user' ? message.text : '';
}

/** Asserts that the material between the markers contains no sentence of the author. */
function assertNothingInjected(request: ModelRequest | undefined, injected: readonly string[]): void {
  assert.ok(request);
  const prompt = promptOf(request);
  const nonce = nonceIn(request);
  assert.equal(prompt.split(`-----BEGIN ${nonce}-----`).length, 2, 'exactly one begin marker');
  assert.equal(prompt.split(`-----END ${nonce}-----`).length, 2, 'exactly one end marker');
  const material = prompt.slice(prompt.indexOf('-----BEGIN'), prompt.indexOf('-----END'));
  assert.match(material, /^[\x20-\x7e\n]*$/, 'printable ASCII');
  for (const text of injected) {
    assert.ok(!material.toLowerCase().includes(text.toLowerCase()), `the reviewer reads ${JSON.stringify(text)}`);
    assert.ok(
      !material.includes(JSON.stringify(text).slice(1, -1)),
      `the reviewer reads ${JSON.stringify(text)} escaped`,
    );
  }
}

describe('attacks on the reviewers', () => {
  it('the fixtures contain at least sixty attacks in ten classes, with unique names', () => {
    const all = CLASSES.flatMap((file) => attacksOf(file).map(({ id }) => `${file} ${id}`));
    assert.ok(all.length >= 60);
    assert.equal(new Set(all).size, all.length);
    assert.ok(CLASSES.length >= 10);
  });
  for (const file of CLASSES) {
    describe(file.replace('.json', ''), () => {
      for (const attack of attacksOf(file)) {
        it(`attack ${attack.id} ends with the result of the gates (${attack.gates})`, async () => {
          const checked = await forge.check({ request: attack.request }, context());
          if (isRefused(checked)) {
            assert.equal(checked.code, attack.gates, checked.message);
            return;
          }
          assert.equal(attack.gates, 'accepted');
          const fixture = await approvingReview();
          const result = await fixture.submit(checked, aCaller());
          assert.equal(result.accepted, true, 'accepted' in result && !result.accepted ? result.message : '');
          assertNothingInjected(fixture.requests[0], attack.injected);
          const registered = fixture.registry.get(checked.digest);
          assert.equal(registered?.tier, 'Session');
          assert.deepEqual(registered.artifact.requires, { apis: [], domains: [], paths: [] });
          const panel = scriptedModel(approveAll);
          const reviewers = ['replay/a', 'replay/b'];
          await createPanel({ model: panel, reviewers, clock: systemClock, nonce: () => 'nonce-3' }).review(
            registered,
            {},
            context().op,
          );
          for (const request of panel.requests) assertNothingInjected(request, attack.injected);
        });
      }
    });
  }
});

describe('a judge that approves everything', () => {
  it('the review calls no judge for a candidate that its own gates refuse', async () => {
    const attack = attacksOf('comments.json')[0];
    assert.ok(attack);
    const checked = await forge.check({ request: attack.request }, context());
    assert.ok(!isRefused(checked));
    const forged: ((candidate: ToolCandidate) => ToolCandidate)[] = [
      (candidate) => ({ ...candidate, digest: `sha256:${'0'.repeat(64)}` }),
      (candidate) => ({
        ...candidate,
        artifact: { ...candidate.artifact, requires: { apis: ['fetch'], domains: ['evil.example'], paths: [] } },
      }),
      (candidate) => ({ ...candidate, evidence: { ...candidate.evidence, tests: [] } }),
      (candidate) => ({
        ...candidate,
        artifact: {
          ...candidate.artifact,
          implementation: { mode: 'Sandbox', source: 'function execute() { return process.env; }' },
        },
      }),
    ];
    for (const forge of forged) {
      const fixture = await approvingReview();
      const result = await fixture.submit(forge(checked), aCaller());
      assert.equal(result.accepted, false);
      assert.deepEqual(fixture.requests, []);
      assert.deepEqual(fixture.registry.all(), []);
      assert.equal((await fixture.registry.rejected('analyst', 'team-a')).length, 1);
    }
  });
});

function isRefused(checked: ToolCandidate | RefusedTool): checked is RefusedTool {
  return 'accepted' in checked;
}
