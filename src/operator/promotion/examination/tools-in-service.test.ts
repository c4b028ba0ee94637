import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import type { EmergentTool, ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { Store } from '../../../kube/informer/store.ts';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import { anArtifact, aSharedTool } from '../../../tempering/tempering.testing.ts';
import { Cache } from '../../kube/cache.ts';
import type { Stored } from '../../kube/types.ts';
import { agentToolName } from '../tool-object.ts';
import { pruneTool, sharedName, type StoredTool } from '../../tool/stored-tool.ts';
import { TOOL_INDEX } from '../../tool/tool-index.ts';
import { toolsInService } from './tools-in-service.ts';

const NAMESPACE = 'team-a';
const AGENT = { namespace: NAMESPACE, name: 'analyst', uid: 'u-1' };

interface Change {
  artifact?: Partial<ToolArtifact>;
  owner?: { name: string; uid: string };
  active?: boolean;
}

/** A tool of tier Shared; of tier Agent when it has an owner. */
function anObject(name: string, { artifact: changes, owner, active = true }: Change = {}): Stored<EmergentTool> {
  const artifact = anArtifact(name, changes);
  const digest = artifactDigest(artifact);
  const tier = owner === undefined ? 'Shared' : 'Agent';
  const object =
    owner === undefined
      ? sharedName(NAMESPACE, name, digest)
      : agentToolName({ namespace: NAMESPACE, name: owner.name }, name, digest);
  const owned =
    owner === undefined
      ? {}
      : {
          labels: { 'temper.dev/agent': owner.name },
          ownerReferences: [{ apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', controller: true, ...owner }],
        };
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: { name: object, namespace: NAMESPACE, uid: `u-${name}`, resourceVersion: '1', ...owned },
    spec: { artifact, digest, tier, contributors: [] },
    status: { active },
  } as unknown as Stored<EmergentTool>;
}

async function compared(objects: Stored<EmergentTool>[], examined: Partial<ToolArtifact> = {}, read = objects) {
  const store = new Store<StoredTool>();
  const tools = new Cache([store]);
  tools.addIndex(TOOL_INDEX.namespace, ({ metadata }) => [metadata.namespace]);
  for (const object of objects) store.set(pruneTool(object));
  let reads = 0;
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => {
      reads += 1;
      return read.find(({ metadata }) => metadata.name === name);
    },
  };
  const tool = { ...aSharedTool('double', examined), tier: 'Session' as const };
  const found = await toolsInService({ client: client as never, tools }, AGENT, tool, NEVER_ABORTED);
  return { names: found.tools.map(({ artifact }) => artifact.name), incomparable: found.incomparable, reads, found };
}

describe('the tools of a cluster that a tool is compared with', () => {
  it('they are active tools of its agent and Shared ones, under another name', async () => {
    const { names, found } = await compared([
      anObject('shared'),
      anObject('own', { owner: AGENT }),
      anObject('inactive', { active: false }),
      anObject('of_another_agent', { owner: { name: 'other', uid: 'u-2' } }),
      anObject('double', { artifact: { description: 'The version that it replaces.' } }),
    ]);
    assert.deepEqual(names.toSorted(), ['own', 'shared']);
    for (const tool of found.tools) assert.deepEqual(await tool.recorded(), [], 'inputs of other agents stay away');
  });

  it('composed tools, and tools whose output depends on more than the input, are counted', async () => {
    const clock: Partial<ToolArtifact> = { requires: { apis: ['clock'], domains: [], paths: [] } };
    const step = { name: 'one', tool: 'file_read', inputMapping: '{}' };
    const objects = [
      anObject('plain'),
      anObject('timed', { artifact: clock }),
      anObject('chain', { artifact: { implementation: { mode: 'Compose', steps: [step] } } }),
    ];
    const { names, incomparable } = await compared(objects);
    assert.deepEqual([names, incomparable], [['plain'], 2]);
    const timed = await compared(objects, clock);
    assert.deepEqual([timed.names, timed.incomparable, timed.reads], [[], 3, 0]);
  });

  it('an object whose content is not that of its digest is not compared', async () => {
    const object = anObject('plain');
    const { artifact } = object.spec;
    const forged = { ...object, spec: { ...object.spec, artifact: { ...artifact, description: 'Another.' } } };
    assert.deepEqual((await compared([object], {}, [forged])).names, []);
    assert.deepEqual((await compared([object], {}, [])).names, []);
  });

  it('at most sixteen objects are read, those with similar names first', async () => {
    const objects = Array.from({ length: 30 }, (_, index) => anObject(`other_${String(index).padStart(2, '0')}`));
    const { names, reads } = await compared([...objects, anObject('number_doubles')]);
    assert.deepEqual([names[0], names.length, reads], ['number_doubles', 16, 16]);
  });
});
