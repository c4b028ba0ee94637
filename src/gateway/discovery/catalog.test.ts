import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { search } from '../../discovery/lexical/search.ts';
import { keyOf } from '../../kube/informer/store.ts';
import type { Digest } from '../../lib/canonical.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { objectName } from '../../tempering/registry/object-name.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { pruneCapability, prunePromotedTool } from './catalog-entries.ts';
import { WatchedCatalog } from './catalog.ts';

const NAMESPACE = 'team-a';

function aTool(artifact: ToolArtifact, agent?: string): EmergentTool {
  const digest = artifactDigest(artifact);
  const tier = agent === undefined ? 'Shared' : 'Agent';
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: {
      name: objectName(artifact.name, tier, `${NAMESPACE}/${agent ?? ''}`, digest),
      namespace: NAMESPACE,
      ...(agent === undefined ? {} : { labels: { 'temper.dev/agent': agent } }),
    },
    spec: { artifact, digest, tier },
    status: { active: true },
  };
}

function aCatalog(isDeactivated: (agent: string, digest: Digest) => boolean = () => false) {
  const lines: string[] = [];
  const changed: string[] = [];
  const objects = new Map<string, EmergentTool>();
  let reads = 0;
  const log = createLogger({
    level: 'info',
    destination: { write: (line) => lines.push(line) },
    secrets: createSecretRedactor(),
  });
  const library = new WatchedCatalog({
    log,
    isServed: () => true,
    onChange: (namespace) => changed.push(namespace),
    sources: { get: async () => undefined },
    isDeactivated: (_namespace, agent, digest) => isDeactivated(agent, digest),
    async read(_namespace, name) {
      reads += 1;
      return objects.get(name);
    },
  });
  const put = (tool: EmergentTool): void => {
    objects.set(tool.metadata.name, tool);
    const object = prunePromotedTool(tool as never);
    library.toolChanged({ type: 'added', key: keyOf(object), object });
  };
  const found = (query: string): number =>
    search({ query }, { indexes: [library.index(NAMESPACE)], permits: () => true }).length;
  return { library, lines, changed, objects, put, found, reads: () => reads };
}

describe('the catalog of the gateway', () => {
  it('the cache contains neither artifacts nor schemas, and an artifact is read once', async () => {
    const { library, put, reads } = aCatalog();
    const tool = aTool(anArtifact('double_it'), 'analyst');
    assert.ok(!JSON.stringify(prunePromotedTool(tool as never)).includes('execute'));
    put(tool);
    for (let time = 0; time < 3; time += 1) {
      const [registered] = await library.tools(NAMESPACE, 'analyst');
      assert.deepEqual(registered?.artifact, tool.spec.artifact);
    }
    assert.equal(reads(), 1);
    assert.deepEqual(await library.tools(NAMESPACE, 'clerk'), []);
    assert.deepEqual(await library.tools('team-b', 'analyst'), []);
  });

  it('a tool whose object changed or was deleted since the watch event is not returned', async () => {
    const { library, put, objects } = aCatalog();
    const tool = aTool(anArtifact('double_it'));
    put(tool);
    objects.set(tool.metadata.name, {
      ...tool,
      spec: { ...tool.spec, artifact: anArtifact('double_it', { description: 'Other.' }) },
    });
    assert.deepEqual(await library.tools(NAMESPACE, 'analyst'), []);
    objects.delete(tool.metadata.name);
    assert.deepEqual(await library.tools(NAMESPACE, 'analyst'), []);
  });

  it('a tool that is deactivated for one agent leaves its tools and changes its version, and no other agent loses it', async () => {
    const lost = new Set<string>();
    const { library, put } = aCatalog((agent, digest) => lost.has(`${agent} ${digest}`));
    const tool = aTool(anArtifact('double_it'));
    put(tool);
    const [liar, neighbour] = [library.version(NAMESPACE, 'liar'), library.version(NAMESPACE, 'neighbour')];
    lost.add(`liar ${tool.spec.digest}`);
    library.agentChanged(NAMESPACE, 'liar');
    assert.notEqual(library.version(NAMESPACE, 'liar'), liar);
    assert.equal(library.version(NAMESPACE, 'neighbour'), neighbour);
    assert.deepEqual(await library.tools(NAMESPACE, 'liar'), []);
    assert.equal((await library.tools(NAMESPACE, 'neighbour')).length, 1);
  });

  it("the agent's own tool precedes a shared one of the same name, and at most a hundred tools are returned", () => {
    const { library, put } = aCatalog();
    put(aTool(anArtifact('same', { description: 'Shared.' })));
    const own = aTool(anArtifact('same', { description: 'Own.' }), 'analyst');
    put(own);
    assert.deepEqual(
      library.promotedTools(NAMESPACE, 'analyst').map(({ digest }) => digest),
      [own.spec.digest],
    );
    for (let number = 0; number < 150; number += 1) put(aTool(anArtifact(`tool_${number}`)));
    const promoted = library.promotedTools(NAMESPACE, 'analyst');
    assert.equal(promoted.length, 100);
    assert.equal(promoted[0]?.digest, own.spec.digest);
  });

  const change = (
    number: number,
    type: 'added' | 'deleted',
    description = `word${'x'.repeat(number % 7)} ${number}`,
  ) => {
    const metadata = { name: `c-${number}`, namespace: NAMESPACE };
    const object = pruneCapability({ metadata, spec: { type: 'Skill', description } } as never);
    const key = keyOf(object);
    return type === 'added' ? { type, key, object } : { type, key, object, tombstone: false };
  };

  it('a namespace has at most 5,000 entries, and the limit is logged once', () => {
    const { library, lines, found } = aCatalog();
    for (let number = 0; number < 5_010; number += 1) library.capabilityChanged(change(number, 'added'));
    assert.equal(library.index(NAMESPACE).size, 5_000);
    assert.equal(lines.filter((line) => line.includes('the catalog limit')).length, 1);
    assert.deepEqual([found('4999'), found('5000'), found('5009')], [1, 0, 0]);
    for (let number = 0; number < 20; number += 1) library.capabilityChanged(change(number, 'deleted'));
    assert.equal(library.index(NAMESPACE).size, 4_990);
    assert.deepEqual([found('5000'), found('5009')], [1, 1]);
  });

  it('entries beyond the limit take the places of deleted ones, in their order and with their latest text', async () => {
    const { library, put, found, changed } = aCatalog();
    for (let number = 0; number < 5_003; number += 1) library.capabilityChanged(change(number, 'added'));
    put(aTool(anArtifact('double_it')));
    library.capabilityChanged(change(5_000, 'added', 'changed since'));
    library.capabilityChanged(change(5_001, 'deleted'));
    assert.deepEqual([found('changed'), found('5002'), found('double'), changed.length], [0, 0, 0, 0]);
    library.capabilityChanged(change(7, 'deleted'));
    assert.deepEqual([found('changed'), found('5002'), found('double')], [1, 0, 0]);
    library.capabilityChanged(change(8, 'deleted'));
    assert.deepEqual([found('5001'), found('5002'), found('double')], [0, 1, 0]);
    const version = library.version(NAMESPACE, 'analyst');
    library.capabilityChanged(change(9, 'deleted'));
    assert.deepEqual([found('double'), changed], [1, [NAMESPACE]]);
    assert.notEqual(library.version(NAMESPACE, 'analyst'), version);
    assert.equal((await library.tools(NAMESPACE, 'analyst')).length, 1);
    assert.equal(library.index(NAMESPACE).size, 5_000);
  });

  it('objects that violate the schema have no entry and cause no error', () => {
    for (const spec of [undefined, null, {}, { type: 'Tool' }, { artifact: {}, digest: 'x', tier: 'Shared' }]) {
      const object = { metadata: { name: 'odd', namespace: NAMESPACE }, spec, status: { active: true } } as never;
      assert.equal(prunePromotedTool(object).entry, undefined);
      assert.equal(pruneCapability(object).entry, undefined);
    }
  });
});
