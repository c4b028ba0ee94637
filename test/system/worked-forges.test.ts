import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openAudit } from '../../src/audit/recorded-trail.ts';
import { createForge } from '../../src/forge/forge.ts';
import { createForgedTool } from '../../src/forge/forged-tool.ts';
import { createForgeReview } from '../../src/forge/review.ts';
import { aCall, aCaller, aContext, anOp, aTool } from '../../src/forge/forge.testing.ts';
import type { AcceptedTool, Judge } from '../../src/forge/types.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Json, JsonObject } from '../../src/lib/json.ts';
import { memoryRecordStore } from '../../src/lib/record-store.ts';
import { createDecider } from '../../src/policy/decider.ts';
import type { HostCalls } from '../../src/sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../src/sandbox/supervisor.ts';
import { exportPackage, parsePackage } from '../../src/tempering/packages/packages.ts';
import { openRegistry } from '../../src/tempering/registry/registry.ts';
import { createSchemaCompiler } from '../../src/tools/json-schema/compiler.ts';
import { ROOT } from './command.ts';

const FORGES = join(ROOT, 'test/fixtures/forges');

/** An input and the expected output per tool, different from the inputs of its tests. */
const USES: Record<string, { input: JsonObject; output: Json }> = {
  check_http_status: {
    input: { url: 'https://status.example.com/up' },
    output: { status: 204, ok: true, redirected: false },
  },
  convert_temperature: { input: { value: 50, from: 'F', to: 'K' }, output: { result: 283.15 } },
  fetch_analyze_report: {
    input: { endpoint: 'https://api.example.com/m', timeRange: 'today' },
    output: { output: '# Report' },
  },
  parse_csv: {
    input: { csv: 'k;v\nx;1', delimiter: ';' },
    output: { headers: ['k', 'v'], rows: [{ k: 'x', v: '1' }] },
  },
  research_and_summarize: { input: { topic: 'anvils' }, output: { summary: 'heavy', sources: ['b.example'] } },
  slugify: { input: { text: 'Été in  Paris!' }, output: { slug: 't-in-paris' } },
};

/** Fakes of external services, declared with side effects. */
const effects = { sideEffects: true } as const;
const SERVICES = [
  aTool('web_search', () => ({ output: 'two pages about anvils' }), effects),
  aTool('http_request', () => ({ body: '1,2,3', output: '1,2,3' }), effects),
  aTool('generate_text', ({ prompt }) => textFor(prompt as string), effects),
];

function textFor(prompt: string): Json {
  if (prompt.includes('anvils')) return { summary: 'heavy', sources: ['b.example'] };
  return prompt.includes('1,2,3') ? { output: 'rising', text: 'rising' } : { output: '# Report' };
}

/** A decider of an agent that may forge tools that fetch from one host. */
const networker = createDecider({
  agent: {
    name: 'smith',
    namespace: 'test',
    spec: {
      trustPolicyRef: { name: 'test' },
      model: { primary: 'test/model' },
      prompt: { system: 'test' },
      grants: { tools: ['*'], network: ['status.example.com'] },
      forge: { enabled: true, modes: ['Compose', 'Sandbox'], apis: ['fetch'] },
    },
  },
  policy: {
    name: 'test',
    spec: {
      level: { ceiling: 'standard' },
      forge: { apis: ['fetch'], domains: ['status.example.com'] },
      egress: { allow: ['status.example.com'] },
    },
  },
  level: 'standard',
  tainted: false,
  workspace: '/workspace',
});

const network: HostCalls = {
  call: () =>
    Promise.resolve({ status: 204, headers: {}, body: '', url: 'https://status.example.com/up', redirected: false }),
};

const judge: Judge = {
  review: () =>
    Promise.resolve({ approved: true, confidence: 0.9, reasoning: 'fine', model: 'test/judge', promptDigest: '' }),
};

describe('the sample forges', () => {
  let sandbox: Supervisor;
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  async function forged(request: JsonObject) {
    const records = memoryRecordStore();
    const audit = await openAudit({ records, clock: systemClock });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    const context = aContext({ tools: SERVICES, decider: networker });
    const forge = createForge({ sandbox, clock: systemClock, schemas: createSchemaCompiler() });
    const review = createForgeReview({ judge, sessionTools: registry, context: () => context });
    const candidate = await forge.check({ request }, context);
    assert.ok(!('accepted' in candidate), JSON.stringify(candidate));
    const result = await review.submit(candidate, aCaller, anOp());
    assert.ok(result.accepted, JSON.stringify(result));
    const [registered] = registry.all();
    assert.ok(registered?.active === true);
    return { accepted: result, registered, context };
  }

  async function used({ artifact, digest }: AcceptedTool, input: JsonObject): Promise<Json> {
    const { view } = aContext({ tools: SERVICES });
    const tool = createForgedTool(artifact, digest, 'Session', {
      sandbox,
      clock: systemClock,
      schemas: createSchemaCompiler(),
      hostCalls: () => network,
      describe: (name) => view.find(name)?.descriptor,
    });
    return tool.call(input, aCall(view, anOp()));
  }

  it('every sample forge has an expected use', async () => {
    const names = (await readdir(FORGES)).map((file) => file.replace('.json', '')).sort();
    assert.deepEqual(names, Object.keys(USES).sort());
  });

  for (const [name, { input, output }] of Object.entries(USES)) {
    it(`${name} is forged, called, exported and forged again from its package`, async () => {
      const request = JSON.parse(await readFile(join(FORGES, `${name}.json`), 'utf8')) as JsonObject;
      const { accepted, registered } = await forged(request);
      assert.deepEqual(await used(accepted, input), output);
      for (const form of ['yaml', 'json'] as const) {
        const text = exportPackage(registered, { form, exportedAt: '2026-01-01T00:00:00.000Z' });
        const packaged = parsePackage(text);
        const again = await forged(packaged.request);
        assert.equal(again.accepted.digest, accepted.digest);
        assert.deepEqual(await used(again.accepted, input), output);
      }
    });
  }
});
