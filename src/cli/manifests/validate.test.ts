import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { CliIo } from '../io.ts';
import { validate } from './validate.ts';

const SAMPLES = resolve(import.meta.dirname, '../../../manifests/samples');

async function* noLines(): AsyncGenerator<string> {}

/** A terminal that records its output. */
function memoryIo(cwd: string): { io: CliIo; out: () => string; error: () => string } {
  const written = { out: '', error: '' };
  const io: CliIo = {
    out: (text) => {
      written.out += text;
    },
    error: (text) => {
      written.error += text;
    },
    stdin: () => Promise.resolve(''),
    lines: noLines,
    cwd,
    environment: {},
    colour: false,
    terminal: false,
    signal: NEVER_ABORTED,
  };
  return { io, out: () => written.out, error: () => written.error };
}

function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('temper validate', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-validate-'));
    const agent =
      'apiVersion: temper.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  trustPolicyRef: {name: p}\n';
    await writeFile(
      join(folder, 'bad.yaml'),
      `${agent}  model: {primary: openai/gpt-4o-mini}\n  prompt: {system: Hi.}\n  quotas: {tokensPerHour: "100k"}\n  grants: {network: ["a.*.b"]}\n`,
    );
    await writeFile(join(folder, 'other.yaml'), 'apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n');
  });
  after(async () => {
    await rm(folder, { recursive: true });
  });

  it('validate exits 0 for valid manifests', async () => {
    const { io, out } = memoryIo(folder);
    assert.equal(await validate({ paths: [SAMPLES], output: 'text' }, io), 0);
    assert.match(out(), /13 valid objects, no problems\n$/);
  });

  it('validate exits 1 and prints location, object, field, rule, message and fix', async () => {
    const { io, out } = memoryIo(folder);
    assert.equal(await validate({ paths: ['bad.yaml'], output: 'text' }, io), 1);
    assert.ok(
      out().includes(
        'bad.yaml:8:12  Agent/a spec.quotas.tokensPerHour\n' +
          '  type: spec.quotas.tokensPerHour must be an integer, not the string "100k"\n' +
          '  → write the digits without quotes or suffix: tokensPerHour: 100000\n',
      ),
      out(),
    );
    assert.match(out(), /bad\.yaml:9:22 {2}Agent\/a spec\.grants\.network\[0\]\n {2}pattern: .*wildcard/);
    assert.match(out(), /0 valid objects, 2 problems in 1 file\n$/);
  });

  it('validate refuses wildcards on public suffixes in a policy, and takes those on names that no list has', async () => {
    const { io, out } = memoryIo(await mkdtemp(join(folder, 'suffixes-')));
    const hosts = '["*.com", "**.github.io:8443", "**.svc.cluster.local", "*"]';
    const policy = `apiVersion: temper.dev/v1alpha1\nkind: TrustPolicy\nmetadata: {name: p}\nspec:\n  egress: {allow: ${hosts}}\n`;
    await writeFile(join(io.cwd, 'policy.yaml'), policy);
    assert.equal(await validate({ paths: ['policy.yaml'], output: 'json' }, io), 1);
    await rm(io.cwd, { recursive: true });
    const [com, github, summary] = jsonLines(out());
    assert.deepEqual([com?.['field'], github?.['field']], ['spec.egress.allow[0]', 'spec.egress.allow[1]']);
    assert.match(String(com?.['message']), /public suffix "com".*name a domain/);
    assert.match(String(github?.['message']), /public suffix "github\.io"/);
    assert.deepEqual(summary, { summary: { valid: 0, problems: 2, warnings: 0, skipped: 0, ignoredFiles: 0 } });
  });

  it('validate prints one JSON line per problem and one for the summary', async () => {
    const { io, out } = memoryIo(folder);
    // The third problem spans both sets: the samples contain policies of the namespace, but not the referenced one.
    assert.equal(await validate({ paths: ['.', SAMPLES], output: 'json' }, io), 1);
    const lines = jsonLines(out());
    assert.deepEqual(lines.at(-1), { summary: { valid: 13, problems: 3, warnings: 0, skipped: 1, ignoredFiles: 0 } });
    assert.deepEqual(Object.keys(lines[0] ?? {}), [
      'severity',
      'file',
      'line',
      'column',
      'object',
      'field',
      'rule',
      'message',
      'fix',
    ]);
    assert.equal(lines.length, 5);
  });

  it('validate names in JSON and in text what it did not check: other groups, other files, a policy of another file', async () => {
    const kustomized = join(folder, 'kustomized');
    await mkdir(kustomized);
    await writeFile(
      join(kustomized, 'kustomization.yaml'),
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n',
    );
    await writeFile(join(kustomized, 'values.yaml'), 'replicas: 2\n');
    await writeFile(
      join(kustomized, 'agent.yaml'),
      'apiVersion: temper.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  trustPolicyRef: {name: p}\n  model: {primary: a/b}\n  prompt: {system: Hi.}\n',
    );
    const json = memoryIo(folder);
    assert.equal(await validate({ paths: ['kustomized'], output: 'json' }, json.io), 0);
    const lines = jsonLines(json.out());
    assert.deepEqual(
      lines.slice(0, -1).map(({ severity, rule }) => [severity, rule]),
      [
        ['note', 'other-group'],
        ['note', 'no-manifest'],
        ['note', 'policy-elsewhere'],
      ],
    );
    assert.match(String(lines[1]?.['file']), /values\.yaml$/);
    const text = memoryIo(folder);
    assert.equal(await validate({ paths: ['kustomized'], output: 'text' }, text.io), 0);
    assert.match(text.out(), /values\.yaml {2}skipped: no manifest/);
    assert.match(
      text.out(),
      /agent\.yaml:1 {2}Agent\/a\n {2}note: TrustPolicy "p" of namespace "default" is not in these/,
    );
  });

  it('validate exits 2 when a path cannot be read or contains no manifest', async () => {
    const missing = memoryIo(folder);
    assert.equal(await validate({ paths: ['none.yaml'], output: 'text' }, missing.io), 2);
    assert.match(missing.error(), /TEMPER_MANIFEST_UNREADABLE: .*none\.yaml does not exist/);
    const foreign = memoryIo(folder);
    assert.equal(await validate({ paths: ['other.yaml'], output: 'text' }, foreign.io), 2);
    assert.match(foreign.error(), /no manifests in other\.yaml \(1 object of other API groups\)/);
    assert.equal(foreign.out(), '');
  });

  it('validate escapes control characters of manifests', async () => {
    await writeFile(
      join(folder, 'control.yaml'),
      'apiVersion: "temper.dev/\\e[2J"\nkind: Agent\nmetadata: {name: a}\nspec: {"\\e]0;x\\a": 1}\n',
    );
    const { io, out } = memoryIo(folder);
    assert.equal(await validate({ paths: ['control.yaml'], output: 'text' }, io), 1);
    for (const character of out()) assert.ok(character === '\n' || character >= ' ', JSON.stringify(out()));
  });
});
