import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { createManifestLoader, type LoadedManifests, loadManifests } from './manifests.ts';

const SAMPLES = resolve(import.meta.dirname, '../../manifests/samples');

describe('loading manifests', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-manifests-'));
  });
  after(async () => {
    await rm(folder, { recursive: true });
  });

  const load = async (name: string, text: string | Uint8Array): Promise<LoadedManifests> => {
    await writeFile(join(folder, name), text);
    return loadManifests([join(folder, name)]);
  };

  it('the loader accepts every sample, and the samples include each kind', async () => {
    const { objects, problems, skipped } = await loadManifests([SAMPLES]);
    assert.deepEqual(problems, []);
    assert.deepEqual(skipped, []);
    const kinds = new Set(objects.map(({ object }) => object.kind));
    assert.deepEqual([...kinds].sort(), [
      'Agent',
      'Approval',
      'ApprovalRequest',
      'Capability',
      'EmergentTool',
      'TrustPolicy',
    ]);
  });

  it('the loader reads nested folders in name order and does not follow symbolic links', async () => {
    const inner = join(folder, 'set', 'inner');
    await mkdir(inner, { recursive: true });
    const policy = (name: string): string =>
      `apiVersion: temper.dev/v1alpha1\nkind: TrustPolicy\nmetadata: {name: ${name}}\nspec: {}\n`;
    await writeFile(join(folder, 'set', 'b.yml'), policy('b'));
    await writeFile(join(folder, 'set', 'a.yaml'), policy('a'));
    await writeFile(
      join(inner, 'c.json'),
      JSON.stringify({ apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata: { name: 'c' }, spec: {} }),
    );
    await writeFile(join(inner, 'notes.txt'), 'not a manifest');
    await symlink('/etc/hostname', join(inner, 'link.yaml'));
    const path = join(folder, 'set');
    const { objects, problems } = await loadManifests([path, join(path, 'a.yaml')]);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      objects.map(({ object }) => object.metadata.name),
      ['a', 'b', 'c'],
    );
  });

  it('the loader throws for a path that does not exist', async () => {
    await assert.rejects(loadManifests([join(folder, 'none')]), (error) =>
      isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE'),
    );
  });

  it('the loader skips objects of other API groups and lists them', async () => {
    const { objects, problems, skipped } = await load(
      'other.yaml',
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n',
    );
    assert.deepEqual([objects, problems], [[], []]);
    assert.deepEqual(
      skipped.map(({ kind, line }) => [kind, line]),
      [['Namespace', 1]],
    );
  });

  it('the loader ignores a file that is no manifest only in the folder of a kustomization, and only when it is not named', async () => {
    const project = join(folder, 'kustomized');
    await mkdir(join(project, 'replay'), { recursive: true });
    await writeFile(
      join(project, 'kustomization.yaml'),
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n',
    );
    const script = join(project, 'replay', 'script.yaml');
    await writeFile(script, 'rules: []\n');
    const whole = await loadManifests([project]);
    assert.deepEqual(whole.problems, []);
    assert.deepEqual(whole.ignoredFiles, [script]);
    const named = await loadManifests([project, script]);
    assert.ok(named.problems.some(({ file, field }) => file === script && field === 'apiVersion'));
    const elsewhere = await loadManifests([join(project, 'replay')]);
    assert.ok(elsewhere.problems.some(({ rule }) => rule === 'manifest'));
    await writeFile(script, 'kind: Agent\n');
    assert.ok((await loadManifests([project])).problems.some(({ field }) => field === 'apiVersion'));
  });

  it('the loader rejects a file that is too large or not UTF-8 text, without reading further', async () => {
    const large = await load('large.yaml', `# ${'x'.repeat(1024 * 1024)}`);
    assert.deepEqual(
      large.problems.map(({ rule }) => rule),
      ['file-size'],
    );
    const binary = await load('binary.yaml', new Uint8Array([0xff, 0xfe, 0x00]));
    assert.deepEqual(
      binary.problems.map(({ rule }) => rule),
      ['encoding'],
    );
  });

  it('the loader reports the line of each object and of each problem across several documents', async () => {
    const text = [
      'apiVersion: temper.dev/v1alpha1',
      'kind: TrustPolicy',
      'metadata: {name: fine}',
      'spec: {}',
      '---',
      'apiVersion: temper.dev/v1alpha1',
      'kind: TrustPolicy',
      'metadata: {name: wrong}',
      'spec:',
      '  autonomy: semi',
    ].join('\r\n');
    const { objects, problems } = await load('two.yaml', text);
    assert.deepEqual(
      objects.map(({ object, line }) => [object.metadata.name, line]),
      [['fine', 1]],
    );
    assert.deepEqual(
      problems.map(({ line, column, object, field, rule, fix }) => [line, column, object, field, rule, fix]),
      [
        [
          10,
          3,
          'TrustPolicy/wrong',
          'spec.autonomy',
          'enum',
          'did you mean Semi? one of Full, Semi, Supervised, Locked',
        ],
      ],
    );
  });

  it('the loader reports duplicate items, and handles a very long list in linear time', async () => {
    const head = 'apiVersion: temper.dev/v1alpha1\nkind: TrustPolicy\nmetadata: {name: p}\n';
    const twice = await load('twice.yaml', `${head}spec: {forge: {apis: [crypto, fetch, crypto]}}\n`);
    assert.deepEqual(
      twice.problems.map(({ field, rule }) => [field, rule]),
      [['spec.forge.apis', 'duplicate-item']],
    );
    const names = Array.from({ length: 90_000 }, (_, at) => `x${at}`).join(',');
    const many = await load('many.yaml', `${head}spec: {forge: {apis: [${names}]}}\n`);
    assert.equal(many.problems.length, 100);
    assert.ok(many.problems.some(({ rule }) => rule === 'items'));
  });

  it('the loader validates one parsed object', () => {
    const loader = createManifestLoader();
    const policy = {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'TrustPolicy',
      metadata: { name: 'p' },
      spec: { autonomy: 'None' },
    };
    assert.deepEqual(
      loader.validate(policy).map(({ field, rule }) => [field, rule]),
      [['spec.autonomy', 'enum']],
    );
    assert.deepEqual(loader.validate({ ...policy, spec: {} }), []);
    assert.deepEqual(
      loader.validate([]).map(({ rule }) => rule),
      ['type'],
    );
    assert.deepEqual(
      loader.validate({ apiVersion: 'v1', kind: 'Pod' }).map(({ rule }) => rule),
      ['kind'],
    );
  });
});
