import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { createForge, type Forge, type ForgeContext } from '../../forge/forge.ts';
import { aContext, aTool, denyingHost } from '../../forge/forge.testing.ts';
import { createForgedTool } from '../../forge/forged-tool.ts';
import { createForgeReview } from '../../forge/review.ts';
import type { ToolCandidate, ForgeResult, RefusedTool } from '../../forge/types.ts';
import { systemClock } from '../../lib/clock.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ModelRequest } from '../../models/port.ts';
import { createDecider } from '../../policy/decider.ts';
import { aSnapshot } from '../../policy/policy.testing.ts';
import type { Decider } from '../../policy/types.ts';
import type { HostCalls } from '../../sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Registry } from '../registry/registry.ts';
import { aCaller, anOp, aRegistry, nonceIn, approveAll, scriptedModel } from '../tempering.testing.ts';
import type { RegisteredTool } from '../types.ts';
import { createJudge } from './judge.ts';
import { createPanel } from './panel.ts';

/** A request of an attack, with its result. */
interface AttackRequest {
  /** Result of the deterministic gates alone: `accepted`, or the code of the refusal. */
  gates: string;
  /** The code with which a review refuses what the gates accept; absent for a tool that a judge may approve. */
  review?: string;
  /** Parts of the normalized tool that decide what it does, and that a reviewer must be able to read. */
  shown?: string[];
  request: JsonObject;
}

/** One attempt to deceive the reviewers, with one request or with several. */
type Attack = {
  id: string;
  /** Texts that its author wants a reviewer to read. */
  injected: string[];
  /** The host functions and hosts that the agent may use; none when absent. */
  permitted?: { apis: ToolApi[]; domains?: string[] };
} & (AttackRequest | { requests: AttackRequest[] });

const FOLDER = fileURLToPath(new URL('../../../test/fixtures/red-team/', import.meta.url));
const CLASSES = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

function attacksOf(file: string): Attack[] {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Attack[];
}

/** The requests in their order: a later one may call the tools of earlier ones. */
function requestsOf(attack: Attack): AttackRequest[] {
  return 'requests' in attack ? attack.requests : [attack];
}

/** An agent that may forge in both modes, with the host functions of the attack. */
function deciderOf({ apis, domains = [] }: NonNullable<Attack['permitted']> = { apis: [] }): Decider {
  return createDecider(
    aSnapshot({
      agent: {
        forge: { enabled: true, modes: ['Compose', 'Sandbox'], apis },
        grants: { tools: ['*'], network: domains },
      },
      policy: { forge: { apis, domains, limits: { duration: '1s' } }, egress: { allow: domains } },
    }),
  );
}

let supervisor: Supervisor;
let forge: Forge;
const schemas = createSchemaCompiler();
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 2 });
  forge = createForge({ sandbox: supervisor, clock: systemClock, schemas });
});
after(() => supervisor[Symbol.asyncDispose]());

/** The only built-in tool; its name is reserved. */
const fileRead = aTool('file_read', () => null, { category: 'file_system' });

/** A session that forges, with the complete review and a judge that approves everything. */
interface ForgeSession {
  registry: Registry;
  requests: ModelRequest[];
  /** The context of the next forge; it has the tools that were added. */
  context(): ForgeContext;
  submit(candidate: ToolCandidate): Promise<ForgeResult>;
  add(candidate: ToolCandidate): void;
}

async function approvingSession(permitted?: Attack['permitted']): Promise<ForgeSession> {
  const registry = await aRegistry();
  const model = scriptedModel(approveAll);
  const decider = deciderOf(permitted);
  const tools: Tool[] = [fileRead];
  const context = (): ForgeContext => aContext({ tools, decider });
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
    context: () => ({ decider, view: context().view, events: () => undefined }),
  });
  return {
    registry,
    requests: model.requests,
    context,
    submit: (candidate) => review.submit(candidate, aCaller(), context().op),
    add: ({ artifact, digest }) => {
      const describe = (name: string): ToolDescriptor | undefined => context().view.find(name)?.descriptor;
      const hostCalls = (): HostCalls => denyingHost;
      tools.push(
        createForgedTool(artifact, digest, 'Session', {
          sandbox: supervisor,
          clock: systemClock,
          schemas,
          hostCalls,
          describe,
        }),
      );
    },
  };
}

/** What two reviewers read for a promotion of the tool. */
async function panelRequests(tool: RegisteredTool | undefined): Promise<ModelRequest[]> {
  assert.ok(tool);
  const panel = scriptedModel(approveAll);
  const reviewers = ['replay/a', 'replay/b'];
  const nonce = (): string => 'nonce-3';
  await createPanel({ model: panel, reviewers, clock: systemClock, nonce }).review(tool, {}, anOp());
  assert.equal(panel.requests.length, 2);
  return panel.requests;
}

function promptOf(request: ModelRequest): string {
  const [message] = request.messages;
  return message?.role === 'user' ? message.text : '';
}

/** The part of the prompt that presents the tool, of which nothing may end early or begin again. */
function materialOf(request: ModelRequest): string {
  const prompt = promptOf(request);
  const nonce = nonceIn(request);
  assert.equal(prompt.split(`-----BEGIN ${nonce}-----`).length, 2, 'exactly one begin marker');
  assert.equal(prompt.split(`-----END ${nonce}-----`).length, 2, 'exactly one end marker');
  const material = prompt.slice(prompt.indexOf('-----BEGIN'), prompt.indexOf('-----END'));
  assert.match(material, /^[\x20-\x7e\n]*$/, 'printable ASCII');
  return material;
}

/** JSON text in lower case, with escapes for characters outside ASCII and without backslashes, of which each level of JSON adds some. */
function comparable(json: string): string {
  const ascii = json.replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return ascii.replaceAll('\\', '').toLowerCase();
}

/** The form of a text inside comparable JSON text. */
function textIn(text: string): string {
  return comparable(JSON.stringify(text).slice(1, -1));
}

/** The letters alone, as a reader joins words that stand apart; shorter texts could occur by chance. */
function lettersOf(text: string): string | undefined {
  const letters = text.toLowerCase().replaceAll(/[^a-z]/g, '');
  return letters.length <= 12 ? undefined : letters;
}

/** Asserts that the material contains no text of the author, neither escaped nor word by word. */
function assertNothingInjected(material: string, injected: readonly string[]): void {
  const [escaped, letters] = [comparable(material), lettersOf(material) ?? ''];
  for (const text of injected) {
    assert.ok(!escaped.includes(textIn(text)), `the reviewer reads ${JSON.stringify(text)}`);
    const joined = lettersOf(text);
    assert.ok(
      joined === undefined || !letters.includes(joined),
      `the reviewer reads the words of ${JSON.stringify(text)}`,
    );
  }
}

/** Sends the requests of an attack one after another; returns what reviewers read. */
async function materialsOf(attack: Attack): Promise<string[]> {
  const session = await approvingSession(attack.permitted);
  const materials: string[] = [];
  for (const { gates, review, shown = [], request } of requestsOf(attack)) {
    const checked = await forge.check({ request }, session.context());
    if (isRefused(checked)) {
      assert.equal(checked.code, gates, checked.message);
      continue;
    }
    assert.equal(gates, 'accepted');
    const result = await session.submit(checked);
    const registered = session.registry.get(checked.digest);
    assert.equal(result.accepted ? undefined : result.code, review, 'message' in result ? result.message : '');
    assert.equal(registered?.tier, result.accepted ? 'Session' : undefined);
    if (registered === undefined) continue;
    assertNothingBeyond(registered, attack.permitted);
    session.add(checked);
    const judged = session.requests.at(-1);
    assert.ok(judged);
    const read = [judged, ...(await panelRequests(registered))].map(materialOf);
    for (const material of read) assertShown(material, shown);
    materials.push(...read);
  }
  return materials;
}

function assertNothingBeyond({ artifact }: RegisteredTool, permitted: Attack['permitted']): void {
  const { apis, domains, paths } = artifact.requires;
  assert.ok(apis.every((api) => permitted?.apis.includes(api)));
  assert.ok(domains.every((domain) => permitted?.domains?.includes(domain)));
  assert.deepEqual(paths, []);
}

function assertShown(material: string, shown: readonly string[]): void {
  const text = material.replaceAll('\\', '');
  for (const code of shown) assert.ok(text.includes(code), `the reviewer cannot read ${code}`);
}

describe('attacks on the reviewers', () => {
  it('the fixtures contain at least 400 attacks in 20 classes, each with a name and requests of its own', () => {
    const all = CLASSES.flatMap((file) => attacksOf(file).map((attack) => ({ file, attack })));
    assert.ok(all.length >= 400, `${all.length} attacks`);
    assert.ok(CLASSES.length >= 20, `${CLASSES.length} classes`);
    assert.equal(new Set(all.map(({ file, attack }) => `${file} ${attack.id}`)).size, all.length);
    assert.equal(
      new Set(all.map(({ attack }) => JSON.stringify([requestsOf(attack), attack.permitted]))).size,
      all.length,
    );
  });
  it('each attack carries the text that its author wants to be read, and an accepted one has a text or code to look for', () => {
    for (const attack of CLASSES.flatMap(attacksOf)) {
      const requests = requestsOf(attack);
      const carried = comparable(JSON.stringify(requests.map(({ request }) => request)));
      const found = attack.injected.filter((text) => carried.includes(textIn(text)));
      if (attack.injected.length > 0) assert.notDeepEqual(found, [], attack.id);
      const isAccepted = requests.every(({ gates }) => gates === 'accepted');
      assert.ok(!isAccepted || found.length > 0 || requests.some(({ shown }) => shown !== undefined), attack.id);
    }
  });
  for (const file of CLASSES) {
    describe(file.replace('.json', ''), () => {
      for (const attack of attacksOf(file)) {
        const results = requestsOf(attack).map(({ gates, review }) => review ?? gates);
        it(`attack ${attack.id} ends with ${results.join(', ')}, and no reviewer reads its text`, async () => {
          const materials = await materialsOf(attack);
          for (const material of materials) assertNothingInjected(material, attack.injected);
          assertNothingInjected(materials.join('\n'), attack.injected);
        });
      }
    });
  }
});

describe('a judge that approves everything', () => {
  it('the review calls no judge for a candidate that its own gates refuse', async () => {
    const attack = attacksOf('comments.json')[0];
    assert.ok(attack);
    const [first] = requestsOf(attack);
    assert.ok(first);
    const checked = await forge.check({ request: first.request }, (await approvingSession()).context());
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
      const session = await approvingSession();
      const result = await session.submit(forge(checked));
      assert.equal(result.accepted, false);
      assert.deepEqual(session.requests, []);
      assert.deepEqual(session.registry.all(), []);
      assert.equal((await session.registry.rejected('analyst', 'team-a')).length, 1);
    }
  });
});

function isRefused(checked: ToolCandidate | RefusedTool): checked is RefusedTool {
  return 'accepted' in checked;
}
