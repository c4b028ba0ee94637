import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { RELEASE_OBJECTS } from '../../../../src/api/cluster.ts';
import type { ToolArtifact } from '../../../../src/api/v1alpha1/emergenttool.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { createEncryptedTexts } from '../../../../src/nats/sources/encrypted-texts.ts';
import { createSourceCipher, SourceKeyring } from '../../../../src/nats/sources/source-cipher.ts';
import { parseSourceKeys, type SourceKey, sourceKeysText } from '../../../../src/nats/sources/source-keys.ts';
import { createToolSources, sourceKey } from '../../../../src/nats/sources/tool-sources.ts';
import { openSessionRegistry } from '../../../../src/nats/sessions/session-registry.ts';
import { type PlainObject, TYPES } from '../../../../src/operator/kube/types.ts';
import { createSupervisor } from '../../../../src/sandbox/supervisor.ts';
import { artifactWithSource } from '../../../../src/tempering/withheld/artifact-with-source.ts';
import { artifactDigest } from '../../../../src/tempering/registry/serialization.ts';
import { streamsWithText } from '../../../support/nats/stored-text.ts';
import { RELEASE_NAMESPACE } from '../../../support/api-server/api-server-fixture.ts';
import { poll, pollValue } from '../../../support/poll.ts';
import { APPROVING, type PromotionFixture, REVIEWERS } from '../../../support/promotion/promotion-fixture.ts';
import { sandboxedOutputs } from '../../../support/promotion/simulated-verifier.ts';
import { NEVER_ABORTED } from '../../../support/stubs.ts';

/** A text of the source that nothing but the source has. */
const SECRET = 'kestrel4711';
const IMPLEMENTATION: ToolArtifact['implementation'] = {
  mode: 'Sandbox',
  source: `function execute(input) { return { result: input.value * 2 + '${SECRET}'.length - ${SECRET.length} }; }`,
};
const KINDS = [TYPES.emergentTools, TYPES.agents, TYPES.trustPolicies, TYPES.approvalRequests, TYPES.events];

/** Reads the keys as a gateway mounts them, or replaces them. */
async function sourceKeysSecret({ apiServer }: PromotionFixture, text?: string): Promise<string> {
  const ref = { namespace: RELEASE_NAMESPACE, name: RELEASE_OBJECTS.sourceKeys };
  if (text !== undefined) {
    const data = { 'keys.json': Buffer.from(text).toString('base64') };
    await apiServer.client.patch(TYPES.secrets, ref, { data }, NEVER_ABORTED);
  }
  const found = await apiServer.client.get<PlainObject>(TYPES.secrets, ref, NEVER_ABORTED);
  const { 'keys.json': stored = '' } = (found?.['data'] ?? {}) as Record<string, string>;
  return Buffer.from(stored, 'base64').toString('utf8');
}

export function withheldPromotion(open: () => PromotionFixture): void {
  before(() =>
    pollValue(
      'the first key',
      async () => open().sourceKeys.keys,
      ({ length }) => length > 0,
    ),
  );

  const sourcesOf = ({ gateway, sourceKeys }: PromotionFixture) =>
    createEncryptedTexts(gateway, createSourceCipher(sourceKeys, systemClock));

  async function assertNowhere({ nats, apiServer }: PromotionFixture, when: string): Promise<void> {
    assert.deepEqual(await streamsWithText(await nats.connect('operator'), SECRET), [], when);
    for (const type of KINDS) {
      const all = await apiServer.client.list(type, {}, NEVER_ABORTED);
      assert.doesNotMatch(JSON.stringify(all), new RegExp(SECRET), `${when}: ${type.plural}`);
    }
  }

  it('a tool whose source is withheld rises to tier Agent, and its source is in no object and no stream', async () => {
    const fixture = open();
    await using sandbox = await createSupervisor({ clock: systemClock });
    fixture.behaviour = sandboxedOutputs(sandbox);
    const quoting = `it has ${SECRET}`;
    fixture.panel = { ...APPROVING, reasoning: quoting };
    const agent = await fixture.prepare({ models: REVIEWERS }, 5, {
      artifact: { implementation: IMPLEMENTATION },
      withheld: true,
    });
    fixture.panel = APPROVING;
    await fixture.request(agent);
    const record = await fixture.settled(agent);
    assert.equal(record?.state, 'Promoted', JSON.stringify(record));
    await assertNowhere(fixture, 'a promoted tool');
    const [object] = await fixture.objectsOf(agent.name);
    assert.ok(object !== undefined);
    const { artifact, withheldSource, digest } = object.spec;
    assert.equal(artifact.implementation.source, undefined);
    assert.equal(withheldSource?.bytes, IMPLEMENTATION.source?.length);
    const [active, shareable] = object.status?.conditions ?? [];
    assert.equal(active?.reason, 'Verified', JSON.stringify(object.status));
    assert.deepEqual(
      [object.status?.active, shareable?.type, shareable?.reason],
      [true, 'Shareable', 'SourceWithheld'],
    );
    const read = await artifactWithSource(object as never, createToolSources(sourcesOf(fixture)));
    assert.ok(read !== undefined && artifactDigest(read) === digest, 'a gateway serves the tool from the store');
    const shared = await poll('the condition Shared', async () => {
      const [found] = await fixture.objectsOf(agent.name);
      return found?.status?.conditions?.find(({ type }) => type === 'Shared');
    });
    assert.deepEqual([shared.reason, /approver must read/.test(shared.message)], ['NotShareable', true]);
  });

  it('a tool leaves service when its withheld source is lost, and returns with it', async () => {
    const fixture = open();
    const agent = await fixture.prepare({ models: REVIEWERS }, 5, {
      artifact: { implementation: IMPLEMENTATION },
      withheld: true,
    });
    await fixture.request(agent);
    assert.equal((await fixture.settled(agent))?.state, 'Promoted');
    const texts = sourcesOf(fixture);
    await texts.remove(sourceKey(agent.uid, agent.tool.digest));
    const reasonOf = async () => {
      const [found] = await fixture.objectsOf(agent.name);
      return found?.status?.conditions?.find(({ type }) => type === 'Active')?.reason;
    };
    // A restarted operator looks at every tool; a running one at those that differ from the store, every minute.
    await fixture.stop();
    await fixture.start();
    await poll('the tool out of service', async () => (await reasonOf()) === 'SourceLost');
    await createToolSources(texts).put(agent.uid, agent.tool.digest, IMPLEMENTATION.source ?? '');
    await fixture.stop();
    await fixture.start();
    await poll('the tool in service', async () => (await reasonOf()) === 'Verified');
  });

  it('a key that is replaced after 90 days keeps every source readable, and leaves when nothing has it', async () => {
    const fixture = open();
    const agent = await fixture.prepare({ models: REVIEWERS }, 5, {
      artifact: { implementation: IMPLEMENTATION },
      withheld: true,
    });
    await fixture.request(agent);
    assert.equal((await fixture.settled(agent))?.state, 'Promoted');
    const keysOf = async (): Promise<SourceKey[]> => parseSourceKeys(await sourceKeysSecret(fixture));
    /** Whether a gateway with these keys of the Secret alone serves the tool. */
    const isServed = async (keys: readonly SourceKey[]): Promise<boolean> => {
      const keyring = Object.assign(new SourceKeyring(), { keys });
      const sources = createToolSources(
        createEncryptedTexts(fixture.gateway, createSourceCipher(keyring, systemClock)),
      );
      const [object] = await fixture.objectsOf(agent.name);
      const read = await artifactWithSource(object as never, sources).catch(() => undefined);
      return read !== undefined && artifactDigest(read) === agent.tool.digest;
    };
    /** The next operator finds a Secret whose newest key is that old. */
    const age = async (hours: number): Promise<void> => {
      await fixture.stop();
      const keys = await keysOf();
      const createdAt = new Date(Date.now() - hours * 3_600_000);
      const aged = keys.map((key, index) => (index === keys.length - 1 ? { ...key, createdAt } : key));
      await sourceKeysSecret(fixture, sourceKeysText(aged));
      fixture.sourceKeys.keys = aged;
      await fixture.start();
    };
    const [first] = await keysOf();
    assert.ok(first !== undefined && (await isServed([first])));
    await age(91 * 24);
    const [, second] = await pollValue('the second key', keysOf, ({ length }) => length === 2);
    assert.ok(second !== undefined && (await isServed([first])), 'a new key is distributed before it encrypts');
    assert.equal(await isServed([second]), false);
    await age(2);
    await poll('every source under the second key', () => isServed([second]));
    assert.ok(await isServed(await keysOf()), 'gateways read it meanwhile');
    await age(49);
    await poll('the look at what is encrypted', async () => fixture.sourceKeys.inUse?.has(first.id) === false);
    await age(49);
    const left = await pollValue('the end of the first key', keysOf, ({ length }) => length === 1);
    assert.equal(left[0]?.id, second.id);
    assert.ok(await isServed(left));
  });

  it('a policy that asks a user promotes no tool whose source is withheld', async () => {
    const fixture = open();
    const policy = { models: REVIEWERS, promotion: { toAgent: { requireHuman: true } } };
    const agent = await fixture.prepare(policy, 5, { artifact: { implementation: IMPLEMENTATION }, withheld: true });
    await fixture.request(agent);
    const record = await fixture.settled(agent);
    assert.equal(record?.state, 'Candidate');
    assert.match(record.missing.join(), /requireHuman of the policy asks a user, who cannot read the source/);
    const sources = createToolSources(sourcesOf(fixture));
    const tools = await openSessionRegistry(fixture.gateway, { sources }).tools(agent.uid, 's1');
    assert.deepEqual(
      tools.map(({ artifact }) => artifact.implementation),
      [IMPLEMENTATION],
    );
  });
}
