import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createForge, type Forge, type ForgeContext } from '../forge/forge.ts';
import { createForgeReview } from '../forge/review.ts';
import type { Candidate, ForgeCaller, ForgeResult, Refused } from '../forge/types.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ModelRequest } from '../models/port.ts';
import { createDecider } from '../policy/decider.ts';
import { aSnapshot } from '../policy/fixtures.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../tools/schemas.ts';
import type { Tool } from '../tools/contract.ts';
import { createToolView } from '../tools/view.ts';
import { createJudge } from './judge.ts';
import { createPanel } from './panel.ts';
import type { Registry } from './registry.ts';
import { aCaller, anOp, aRegistry, nonceIn, sayYes, scriptedModel } from './testing.ts';

/** One tool that tries to be more than it is. */
interface Attack {
  id: string;
  /** What its author wants a reviewer to read. */
  injected: string[];
  /** What the deterministic gates alone make of it: `accepted`, or the code of the refusal. */
  gates: string;
  request: JsonObject;
}

const FOLDER = join(import.meta.dirname, '../../test/fixtures/red-team');
const CLASSES = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

function attacksOf(file: string): Attack[] {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Attack[];
}

/** An agent that may forge in both modes, and no host function at all. */
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

/** The one tool there is beside the forged ones; its name is taken. */
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
      call: () => Promise.reject(new TemperError('TEMPER_HOST_CALL_DENIED', 'nothing is reached here')),
    }),
    op: { ...anOp(), deadline: systemClock.monotonic() + 60_000 },
  };
}

interface Gullible {
  registry: Registry;
  requests: ModelRequest[];
  submit(candidate: Candidate, caller: ForgeCaller): Promise<ForgeResult>;
}

/** The whole second half of a forge, with a judge that says yes to everything. */
async function gullibleReview(): Promise<Gullible> {
  const registry = await aRegistry();
  const model = scriptedModel(sayYes);
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
    world: () => ({ decider, view: createToolView(), events: () => undefined }),
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

/** What stands between the marks: facts, and nothing the author wrote as a sentence. */
function assertNothingInjected(request: ModelRequest | undefined, injected: readonly string[]): void {
  assert.ok(request);
  const prompt = promptOf(request);
  const nonce = nonceIn(request);
  assert.equal(prompt.split(`-----BEGIN ${nonce}-----`).length, 2, 'one beginning');
  assert.equal(prompt.split(`-----END ${nonce}-----`).length, 2, 'one end');
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
  it('are at least sixty, over all classes, each with a name of its own', () => {
    const all = CLASSES.flatMap((file) => attacksOf(file).map(({ id }) => `${file} ${id}`));
    assert.ok(all.length >= 60);
    assert.equal(new Set(all).size, all.length);
    assert.ok(CLASSES.length >= 10);
  });
  for (const file of CLASSES) {
    describe(file.replace('.json', ''), () => {
      for (const attack of attacksOf(file)) {
        it(`${attack.id} gets what the gates give (${attack.gates}) and not more`, async () => {
          const checked = await forge.check({ request: attack.request }, context());
          if (isRefused(checked)) {
            assert.equal(checked.code, attack.gates, checked.message);
            return;
          }
          assert.equal(attack.gates, 'accepted');
          const gullible = await gullibleReview();
          const result = await gullible.submit(checked, aCaller());
          assert.equal(result.accepted, true, 'accepted' in result && !result.accepted ? result.message : '');
          assertNothingInjected(gullible.requests[0], attack.injected);
          const registered = gullible.registry.get(checked.digest);
          assert.equal(registered?.tier, 'Session');
          assert.deepEqual(registered.artifact.requires, { apis: [], domains: [], paths: [] });
          const panel = scriptedModel(sayYes);
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

describe('a judge that says yes to everything', () => {
  it('is not even asked about what the gates refuse on its side', async () => {
    const attack = attacksOf('comments.json')[0];
    assert.ok(attack);
    const checked = await forge.check({ request: attack.request }, context());
    assert.ok(!isRefused(checked));
    const forged: ((candidate: Candidate) => Candidate)[] = [
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
      const gullible = await gullibleReview();
      const result = await gullible.submit(forge(checked), aCaller());
      assert.equal(result.accepted, false);
      assert.deepEqual(gullible.requests, []);
      assert.deepEqual(gullible.registry.all(), []);
      assert.equal((await gullible.registry.rejected('analyst', 'team-a')).length, 1);
    }
  });
});

function isRefused(checked: Candidate | Refused): checked is Refused {
  return 'accepted' in checked;
}
