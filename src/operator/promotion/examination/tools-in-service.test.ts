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
import { digestOf } from '../../../lib/canonical.ts';
import type { JsonObject } from '../../../lib/json.ts';
import type { RecordedInput } from '../../../tempering/types.ts';
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

function aRecordedInput(input: JsonObject): RecordedInput {
  return { digest: digestOf(input), root: 'root', input, answers: 'none' };
}

async function compared(objects: Stored<EmergentTool>[], examined: Partial<ToolArtifact> = {}, read = objects) {
  const objectStore = new Store<StoredTool>();
  const tools = new Cache([objectStore]);
  tools.addIndex(TOOL_INDEX.namespace, ({ metadata }) => [metadata.namespace]);
  for (const object of objects) objectStore.set(pruneTool(object));
  let reads = 0;
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => {
      reads += 1;
      return read.find(({ metadata }) => metadata.name === name);
    },
  };
  const tool = { ...aSharedTool('double', examined), tier: 'Session' as const };
  const store = {
    recordedInputs: async (uid: string) => (uid === AGENT.uid ? [aRecordedInput({ value: 9 })] : []),
  };
  const found = await toolsInService({ client: client as never, tools, store }, AGENT, tool, NEVER_ABORTED);
  return {
    names: found.tools.map(({ artifact }) => artifact.name),
    incomparable: found.incomparable.length,
    reads,
    found,
  };
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
    for (const tool of found.tools) assert.deepEqual(await tool.recorded(), [{ value: 9 }], 'uses of this agent alone');
  });

  it('composed tools of which every step is compared too run, and those with other steps are counted', async () => {
    const clock: Partial<ToolArtifact> = { requires: { apis: ['clock'], domains: [], paths: [] } };
    const steps = (tool: string): Partial<ToolArtifact> => ({
      implementation: { mode: 'Compose', steps: [{ name: 'one', tool, inputMapping: '{}' }] },
    });
    const plain = anObject('plain');
    const timed = anObject('timed', { artifact: clock });
    const chain = anObject('chain', { artifact: steps(`plain@${plain.spec.digest}`) });
    const objects = [
      plain,
      timed,
      chain,
      anObject('long_chain', { artifact: steps(`chain@${chain.spec.digest}`) }),
      anObject('files', { artifact: steps('file_read') }),
      anObject('timed_chain', { artifact: steps(`timed@${timed.spec.digest}`) }),
      anObject('broken_chain', { artifact: steps(`gone@sha256:${'0'.repeat(64)}`) }),
    ];
    const { names, incomparable } = await compared(objects);
    assert.deepEqual([names.toSorted(), incomparable], [['chain', 'long_chain', 'plain'], 4]);
    const examined = await compared(objects, steps(`chain@${chain.spec.digest}`));
    assert.deepEqual(examined.names.toSorted(), ['chain', 'long_chain', 'plain']);
    for (const impure of [clock, steps('file_read'), steps(`timed@${timed.spec.digest}`)]) {
      const none = await compared(objects, impure);
      assert.deepEqual([none.names, none.incomparable, none.reads], [[], 7, 0]);
    }
  });

  it('a tool whose schemas exclude the values of the examined one is not read, whatever its name is', async () => {
    const inputSchema = '{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}';
    const objects = Array.from({ length: 30 }, (_, index) =>
      anObject(`double_${index}`, { artifact: { inputSchema } }),
    );
    const { names, reads } = await compared([...objects, anObject('zzz')]);
    assert.deepEqual([names, reads], [['zzz'], 1]);
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
