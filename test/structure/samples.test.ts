import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { createManifestLoader, type LoadedManifests } from '../../src/api/manifests.ts';
import type { Agent } from '../../src/api/v1alpha1/agent.ts';
import { readReplayScript } from '../../src/models/replay/script/read-script.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const MANIFESTS = join(ROOT, 'manifests');
const CHART_SCRIPTS = join(ROOT, 'charts/temper/files/samples');
/** The folders of the page; the quick start has a page of its own. */
const SAMPLES = readdirSync(MANIFESTS)
  .filter((name) => name !== 'quickstart' && existsSync(join(MANIFESTS, name, 'replay.yaml')))
  .sort();

const LOADED: ReadonlyMap<string, LoadedManifests> = await loadAll([...SAMPLES, 'quickstart', 'sharing']);

async function loadAll(names: readonly string[]): Promise<Map<string, LoadedManifests>> {
  const loader = createManifestLoader();
  const loaded = names.map(async (name) => [name, await loader.load([join(MANIFESTS, name)])] as const);
  return new Map(await Promise.all(loaded));
}

function promptsOf({ objects }: LoadedManifests): string[] {
  return objects.flatMap(({ object }) => (object.kind === 'Agent' ? [(object as Agent).spec.prompt.system ?? ''] : []));
}

describe('the samples', () => {
  it('the page of the samples has the command that starts each of them', async () => {
    const page = await readFile(join(ROOT, 'docs/samples.md'), 'utf8');
    const started = [...page.matchAll(/^kubectl apply -n quickstart -k manifests\/(\S+)$/gm)].map(([, name]) => name);
    assert.deepEqual(new Set(started), new Set(SAMPLES));
    assert.ok(SAMPLES.length >= 8, SAMPLES.join());
  });

  it('the manifests of each sample are valid together', () => {
    for (const [name, { objects, problems }] of LOADED) {
      assert.deepEqual(problems, [], name);
      assert.ok(objects.length > 0, name);
    }
  });

  it('the objects of different samples have different names, because all are in one namespace', () => {
    const names = [...LOADED.values()].flatMap(({ objects }) =>
      objects.map(({ object }) => `${object.kind}/${object.metadata.name}`),
    );
    assert.deepEqual([...new Set(names)], names);
  });

  it('the chart has the scripted answers of each sample', async () => {
    assert.deepEqual(
      readdirSync(CHART_SCRIPTS).sort(),
      SAMPLES.map((name) => `${name}.yaml`),
    );
    for (const name of SAMPLES)
      assert.equal(await realpath(join(CHART_SCRIPTS, `${name}.yaml`)), join(MANIFESTS, name, 'replay.yaml'));
  });

  it('a scripted answer of a sample never answers an agent of another one', async () => {
    for (const name of SAMPLES) {
      const file = join(MANIFESTS, name, 'replay.yaml');
      for (const { name: rule = '', when } of readReplayScript(await readFile(file, 'utf8'), file).rules) {
        const { system } = when ?? {};
        assert.ok(system !== undefined, `${file}: the rule "${rule}" names no system prompt`);
        const others = [...LOADED].filter(([other]) => other !== name).flatMap(([, loaded]) => promptsOf(loaded));
        assert.deepEqual(
          others.filter((text) => text.includes(system)),
          [],
          `${file}: ${rule}`,
        );
      }
    }
  });
});
