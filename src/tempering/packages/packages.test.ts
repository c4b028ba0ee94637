import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { buildArtifact } from '../../forge/gates/build.ts';
import { checkShape } from '../../forge/gates/shape.ts';
import type { RefusedTool } from '../../forge/types.ts';
import { createToolView } from '../../tools/view.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { submitPendingImports, storePendingImport } from './pending-imports.ts';
import { assertPackageDigest, exportPackage, parsePackage } from './packages.ts';
import { sessionTool } from '../registry/registered-tool.ts';
import { aCaller, anAcceptance, anArtifact } from '../tempering.testing.ts';
import type { RegisteredTool } from '../types.ts';

const CEILINGS = {
  allowed: true,
  modes: [],
  apis: [],
  domains: [],
  durationMilliseconds: 5_000,
  memoryBytes: 1_048_576,
  sessionTools: 1,
  agentTools: 1,
  minTestCases: 1,
};
const exportedAt = '2026-03-01T09:00:00.000Z';

function toolOf(artifact = anArtifact()): RegisteredTool {
  return sessionTool(anAcceptance(artifact), aCaller(), exportedAt);
}

/** Digest of the artifact that the shape and build gates create from an imported request. */
function rebuilt(request: JsonObject): string {
  const shaped = checkShape(request, 1);
  assert.ok('request' in shaped, JSON.stringify(shaped));
  return artifactDigest(buildArtifact(shaped.request, CEILINGS, createToolView()));
}

const invalidAt = (place: string) => (error: unknown) =>
  isTemperError(error, 'TEMPER_PACKAGE_INVALID') && error.message.startsWith(place);

describe('tool packages', () => {
  const composed = anArtifact('composed', {
    implementation: {
      mode: 'Compose',
      steps: [
        {
          name: 'one',
          tool: `double@sha256:${'a'.repeat(64)}`,
          inputMapping: '{"value":"$input.value"}',
          condition: '$input.value > 1',
        },
        { name: 'two', tool: 'file_read', inputMapping: '{"path":["x",{"y":null}]}' },
      ],
    },
    tests: [
      {
        input: '{"value":2}',
        fixtures: [
          { tool: 'file_read', output: '"text"' },
          { tool: 'double', input: '{"value":2}', output: '4' },
        ],
      },
    ],
  });
  const reaching = anArtifact('reaching', {
    requires: { apis: ['fetch', 'crypto'], domains: ['api.example.com'], paths: [] },
    description: 'Line\nwith "quotes", \ttabs: and # marks — é 💡',
  });
  for (const [what, artifact] of Object.entries({ sandbox: anArtifact(), composed, reaching })) {
    for (const form of ['yaml', 'json'] as const) {
      it(`a ${what} tool survives export to ${form} and import unchanged`, () => {
        const tool = toolOf(artifact);
        const packaged = parsePackage(exportPackage(tool, { form, exportedAt }));
        assert.equal(packaged.digest, tool.digest);
        assert.equal(rebuilt(packaged.request), tool.digest);
      });
    }
  }
  it('an export has the members of the portable format', () => {
    const content = parse(exportPackage(toolOf(), { form: 'yaml', exportedAt })) as Record<string, JsonObject>;
    assert.equal(content.schemaVersion as unknown, 'agentos.emergent-tool.v1');
    assert.deepEqual(content.portability, { portable: true, warnings: [] });
    assert.deepEqual(Object.keys((content.tool?.implementation ?? {}) as JsonObject), [
      'mode',
      'allowlist',
      'sourcePersisted',
      'redactedAtRest',
      'code',
    ]);
    assert.equal(content.tool?.originalTier, 'session');
  });
  it('the import drops verdicts and statistics', () => {
    const { request, warnings } = parsePackage(exportPackage(toolOf(), { form: 'yaml', exportedAt }));
    assert.ok(!JSON.stringify(request).includes('replay/judge'));
    assert.deepEqual(warnings, ['tool.judgeVerdicts was dropped: it is never imported']);
  });
  it('the import rejects a package without its source', () => {
    for (const text of [
      exportPackage(toolOf(), { form: 'yaml', exportedAt, redact: true }),
      exportPackage({ ...toolOf(), sourceWithheld: true }, { form: 'json', exportedAt }),
    ]) {
      assert.ok(!text.includes('input.value * 2'));
      assert.throws(() => parsePackage(text), invalidAt('tool.implementation.code'));
    }
  });
  it('the digest check rejects a package whose content was changed', () => {
    const text = exportPackage(toolOf(), { form: 'yaml', exportedAt }).replace('* 2', '* 3');
    const packaged = parsePackage(text);
    const built = rebuilt(packaged.request) as `sha256:${string}`;
    assert.throws(() => assertPackageDigest(packaged, built), invalidAt('tool.digest'));
  });
  it('the import accepts a package of another system without a digest', () => {
    const packaged = parsePackage(
      JSON.stringify({
        schemaVersion: 'agentos.emergent-tool.v1',
        packageType: 'emergent-tool',
        tool: {
          name: 'slugify',
          description: 'x',
          inputSchema: { type: 'object', properties: {} },
          implementation: {
            mode: 'sandbox',
            code: 'function execute() {}',
            allowlist: [],
            sourcePersisted: true,
            redactedAtRest: false,
          },
          usageStats: { totalUses: 1_000 },
        },
      }),
    );
    assert.equal(packaged.digest, undefined);
    assert.deepEqual(packaged.warnings, ['tool.usageStats was dropped: it is never imported']);
  });
  const hostile: Record<string, [text: string, place: string]> = {
    'a package with another schema': ['schemaVersion: other', 'schemaVersion'],
    'a package that is not YAML': ['{', 'line 1'],
    'a package with two documents': ['a: 1\n---\nb: 2', 'the file'],
    'a package without a tool': ['schemaVersion: agentos.emergent-tool.v1', 'tool'],
    'a package above the size limit': [`a: ${'x'.repeat(600_000)}`, 'the file'],
    'a package with an invalid digest': [
      'schemaVersion: agentos.emergent-tool.v1\ntool: {name: a, digest: "3f", implementation: {mode: compose, steps: []}}',
      'tool.digest',
    ],
    'a package with an unknown mode': [
      'schemaVersion: agentos.emergent-tool.v1\ntool: {name: a, implementation: {mode: shell}}',
      'tool.implementation.mode',
    ],
  };
  for (const [what, [text, place]] of Object.entries(hostile)) {
    it(`the import rejects ${what} and reports the path`, () =>
      assert.throws(() => parsePackage(text), invalidAt(place)));
  }
  it('the import rejects a package with an alias bomb', () => {
    const lines = ['a0: &a0 [1,1,1,1,1,1,1,1,1,1]'];
    for (let level = 1; level < 10; level += 1)
      lines.push(
        `a${level}: &a${level} [${Array(10)
          .fill(`*a${level - 1}`)
          .join(',')}]`,
      );
    assert.throws(
      () => parsePackage(lines.join('\n')),
      (error) => isTemperError(error, 'TEMPER_PACKAGE_INVALID'),
    );
  });
});

describe('pending imports', () => {
  const waiting = {
    agent: 'analyst',
    namespace: 'team-a',
    name: 'double',
    digest: anAcceptance().digest,
    request: { name: 'double' },
    importedAt: exportedAt,
  };
  const refused = (code: RefusedTool['code']): RefusedTool => ({
    accepted: false,
    name: 'double',
    gate: 'judge',
    code,
    class: 'other',
    message: '',
    details: {},
    gates: [],
  });
  it('a pending import is admitted once, by its own agent', async () => {
    const records = memoryRecordStore();
    await storePendingImport(records, waiting);
    assert.deepEqual(
      await submitPendingImports(records, { agent: 'writer', namespace: 'team-a' }, async () => anAcceptance()),
      [],
    );
    const seen: JsonObject[] = [];
    const submit = async (request: JsonObject) => {
      seen.push(request);
      return anAcceptance();
    };
    assert.equal((await submitPendingImports(records, waiting, submit)).length, 1);
    assert.equal((await submitPendingImports(records, waiting, submit)).length, 0);
    assert.deepEqual(seen, [{ name: 'double' }]);
  });
  it('an import stays pending while the judge is unavailable and leaves the list when it is refused', async () => {
    const records = memoryRecordStore();
    await storePendingImport(records, waiting);
    await submitPendingImports(records, waiting, async () => refused('TEMPER_JUDGE_UNAVAILABLE'));
    assert.equal((await records.list('imports')).length, 1);
    await submitPendingImports(records, waiting, async () => refused('TEMPER_JUDGE_REFUSED'));
    assert.equal((await records.list('imports')).length, 0);
  });
});
