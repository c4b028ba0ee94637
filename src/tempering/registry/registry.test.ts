import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import type { AcceptedTool, RefusedTool } from '../../forge/types.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { JsonObject } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { openRegistry, type Registry, type RegistryChange } from './registry.ts';
import type { PromotionOrder } from './registered-tool.ts';
import { aCaller, anAcceptance, anArtifact, aRegistry, aUse, aVerdict, createFakeClock } from '../tempering.testing.ts';
import type { RegisteredTool } from '../types.ts';

const folders: string[] = [];
async function fileStore(): Promise<{ records: RecordStore; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-registry-'));
  folders.push(folder);
  return { records: fileRecordStore(folder), folder };
}
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const LIMITS = { sessionTools: 10, agentTools: 50 };
const names = (tools: readonly RegisteredTool[]): string[] => tools.map((tool) => `${tool.artifact.name}:${tool.tier}`);
const refusal = (code: string) => (error: unknown) => isTemperError(error) && error.code === code;

function order(digest: PromotionOrder['digest'], changes: Partial<PromotionOrder> = {}): PromotionOrder {
  return {
    digest,
    owner: { agent: 'analyst', namespace: 'team-a' },
    to: 'Agent',
    verdicts: [aVerdict()],
    actor: 'system',
    limits: LIMITS,
    sourceWithheld: false,
    ...changes,
  };
}

describe('registering a tool', () => {
  it('a registered tool is visible only to its agent in its session', async () => {
    const registry = await aRegistry();
    await registry.register(anAcceptance(), aCaller({ session: 's-1' }));
    assert.deepEqual(names(registry.resolve('analyst', 'team-a', 's-1')), ['double:Session']);
    assert.deepEqual(registry.resolve('analyst', 'team-a', 's-10'), []);
    assert.deepEqual(registry.resolve('analyst', 'team-b', 's-1'), []);
    assert.deepEqual(registry.resolve('writer', 'team-a', 's-1'), []);
  });
  it('the registry rejects a caller without a session', async () => {
    const registry = await aRegistry();
    await assert.rejects(
      registry.register(anAcceptance(), aCaller({ session: '' })),
      refusal('TEMPER_FORGE_NO_SESSION'),
    );
    assert.deepEqual(registry.all(), []);
  });
  it('the registry rejects a tool that no judge approved', async () => {
    const registry = await aRegistry();
    const { verdict: _, ...unjudged } = anAcceptance();
    await assert.rejects(registry.register(unjudged, aCaller()), refusal('TEMPER_JUDGE_UNAVAILABLE'));
    const no = anAcceptance(anArtifact(), { verdict: aVerdict({ approved: false }) });
    await assert.rejects(registry.register(no, aCaller()), refusal('TEMPER_JUDGE_REFUSED'));
    assert.deepEqual(registry.all(), []);
  });
  it('the registry rejects an artifact that does not match its digest', async () => {
    const registry = await aRegistry();
    const forged = anAcceptance(anArtifact('double', { description: 'another' }), { digest: anAcceptance().digest });
    await assert.rejects(registry.register(forged, aCaller()), refusal('TEMPER_INTERNAL'));
  });
  it('the registry rejects a built-in name and a name used by another tool in a common view', async () => {
    const registry = await aRegistry();
    await registry.register(anAcceptance(), aCaller());
    const again = anAcceptance(anArtifact('double', { description: 'Another one.' }));
    await assert.rejects(registry.register(anAcceptance(), aCaller()), refusal('TEMPER_FORGE_NAME_TAKEN'));
    await assert.rejects(
      registry.register(anAcceptance(anArtifact('file_read')), aCaller()),
      refusal('TEMPER_FORGE_NAME_TAKEN'),
    );
    await registry.register(again, aCaller({ session: 's-2' }));
    await registry.register(again, aCaller({ agent: 'writer' }));
    assert.equal(registry.resolve('analyst', 'team-a', 's-1').length, 1);
  });
  it('a session replaces its own tool of the same name, also at its limit, and no tool of another session', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    const limits = { sessionTools: 1, agentTools: 50 };
    const [first, second] = ['one', 'two'].map((description) =>
      anAcceptance(anArtifact('double', { description })),
    ) as [AcceptedTool, AcceptedTool];
    await registry.register(first, aCaller(), limits);
    await registry.register(first, aCaller({ session: 's-2' }), limits);
    await registry.recordUse(aUse(first.artifact, { value: 1 }));
    await registry.register(second, aCaller(), limits);
    for (const current of [registry, await aRegistry(records)]) {
      const digests = (session: string) => current.resolve('analyst', 'team-a', session).map(({ digest }) => digest);
      assert.deepEqual([digests('s-1'), digests('s-2')], [[second.digest], [first.digest]]);
      assert.equal(current.all().length, 2, 'only the chain keeps the replaced tool');
      assert.equal((await current.statistics(first.digest, 'team-a')).totalUses, 1, 'the other session still has it');
    }
    await registry.register(first, aCaller(), limits);
    const again = await aRegistry(records);
    assert.deepEqual(
      again.resolve('analyst', 'team-a', 's-1').map(({ digest }) => digest),
      [first.digest],
    );
    assert.equal((await again.statistics(second.digest, 'team-a')).totalUses, 0);
  });
  it('a dropped tool leaves one session, stays away after a restart, and can be forged again', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    const { digest, artifact } = anAcceptance();
    for (const session of ['s-1', 's-2']) await registry.register(anAcceptance(), aCaller({ session }));
    await registry.recordUse(aUse(artifact, { value: 1 }));
    await registry.drop(digest, aCaller({ session: 's-3' }));
    await registry.drop(digest, aCaller({ agent: 'writer' }));
    const here = (from: Registry) => names(from.resolve('analyst', 'team-a', 's-1'));
    assert.deepEqual(here(registry), ['double:Session'], 'another session or agent drops nothing');
    await registry.drop(digest, aCaller());
    await registry.drop(digest, aCaller());
    for (const current of [registry, await aRegistry(records)]) {
      assert.deepEqual(here(current), []);
      assert.deepEqual(names(current.resolve('analyst', 'team-a', 's-2')), ['double:Session']);
    }
    await registry.drop(digest, aCaller({ session: 's-2' }));
    assert.equal((await registry.statistics(digest, 'team-a')).totalUses, 0);
    await registry.register(anAcceptance(), aCaller());
    assert.deepEqual(here(await aRegistry(records)), ['double:Session']);
  });
  it('tool limits apply per session', async () => {
    const registry = await aRegistry();
    const limits = { sessionTools: 2, agentTools: 50 };
    for (const name of ['a', 'b']) await registry.register(anAcceptance(anArtifact(name)), aCaller(), limits);
    await assert.rejects(
      registry.register(anAcceptance(anArtifact('c')), aCaller(), limits),
      refusal('TEMPER_FORGE_LIMIT_REACHED'),
    );
    await registry.register(anAcceptance(anArtifact('c')), aCaller({ session: 's-2' }), limits);
    await registry.register(anAcceptance(anArtifact('c')), aCaller({ agent: 'writer' }), limits);
  });
  it('only one of several concurrent registrations for the last slot succeeds', async () => {
    const registry = await aRegistry();
    const limits = { sessionTools: 1, agentTools: 1 };
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c'].map((name) => registry.register(anAcceptance(anArtifact(name)), aCaller(), limits)),
    );
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected'],
    );
  });
  it('a registration whose documents cannot be written leaves no data', async () => {
    const records = memoryRecordStore();
    const failing: RecordStore = {
      ...records,
      put: async (collection, name, value) => {
        if (collection.endsWith('/tools')) throw new TemperError('TEMPER_STATE_CORRUPT', 'disk full');
        return records.put(collection, name, value);
      },
    };
    const registry = await aRegistry(failing);
    await assert.rejects(registry.register(anAcceptance(), aCaller()), refusal('TEMPER_STATE_CORRUPT'));
    assert.deepEqual(registry.all(), []);
    assert.deepEqual((await aRegistry(records)).all(), []);
    assert.deepEqual(await records.list('sessions/team-a_analyst_s-1/evidence'), []);
  });
});

describe('promotion in the registry', () => {
  it('a promotion creates a new object that replaces the old ones in every view', async () => {
    const registry = await aRegistry();
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller({ session: 's-1' }));
    await registry.register(accepted, aCaller({ session: 's-2' }));
    const tool = await registry.promote(order(accepted.digest));
    assert.match(tool.object, /^tools\/double-[a-z2-7]{26}$/);
    for (const session of ['s-1', 's-2', 's-3']) {
      assert.deepEqual(names(registry.resolve('analyst', 'team-a', session)), ['double:Agent']);
    }
    assert.deepEqual(registry.resolve('writer', 'team-a', 's-1'), []);
    await registry.closeSession(aCaller({ session: 's-1' }));
    assert.deepEqual(names(registry.resolve('analyst', 'team-a', 's-1')), ['double:Agent']);
  });
  it('tier Shared is reachable only from tier Agent and visible to every agent of the namespace', async () => {
    const registry = await aRegistry();
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    await assert.rejects(
      registry.promote(order(accepted.digest, { to: 'Shared' })),
      refusal('TEMPER_PROMOTION_NOT_READY'),
    );
    await registry.promote(order(accepted.digest));
    const shared = await registry.promote(order(accepted.digest, { to: 'Shared', actor: 'user/ann' }));
    assert.equal(shared.tier, 'Shared');
    assert.deepEqual(names(registry.resolve('writer', 'team-a', 's-9')), ['double:Shared']);
    assert.deepEqual(names(registry.resolve('analyst', 'team-a', 's-1')), ['double:Shared']);
    assert.deepEqual(registry.resolve('writer', 'team-b', 's-9'), []);
  });
  it('a promotion fails when another session of the agent uses the name for another tool', async () => {
    const registry = await aRegistry();
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller({ session: 's-1' }));
    await registry.register(anAcceptance(anArtifact('double', { description: 'other' })), aCaller({ session: 's-2' }));
    await assert.rejects(registry.promote(order(accepted.digest)), refusal('TEMPER_FORGE_NAME_TAKEN'));
    assert.deepEqual(names(registry.resolve('analyst', 'team-a', 's-1')), ['double:Session']);
  });
  it('a promotion respects the tool limit of the agent', async () => {
    const registry = await aRegistry();
    const limits = { sessionTools: 10, agentTools: 1 };
    const [a, b] = [anAcceptance(anArtifact('a')), anAcceptance(anArtifact('b'))];
    await registry.register(a, aCaller());
    await registry.register(b, aCaller());
    await registry.promote(order(a.digest, { limits }));
    await assert.rejects(registry.promote(order(b.digest, { limits })), refusal('TEMPER_FORGE_LIMIT_REACHED'));
  });
  it('a withheld source is stored outside the object, restored on load, and never shared', async () => {
    const { records, folder } = await fileStore();
    const registry = await aRegistry(records);
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    const tool = await registry.promote(order(accepted.digest, { sourceWithheld: true }));
    const text = await readFile(join(folder, `${tool.object}.json`), 'utf8');
    assert.ok(!text.includes('function execute'));
    assert.ok(text.includes('SourceWithheld'));
    const again = await aRegistry(records);
    const [loaded] = again.resolve('analyst', 'team-a', 's-1');
    assert.equal(loaded?.artifact.implementation.source, accepted.artifact.implementation.source);
    await assert.rejects(
      again.promote(order(accepted.digest, { to: 'Shared' })),
      refusal('TEMPER_PROMOTION_NOT_READY'),
    );
  });
});

describe('demotion', () => {
  it('a demoted tool leaves every view synchronously and permanently', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    await registry.promote(order(accepted.digest));
    const done = registry.demote(accepted.digest, 'gives\nwrong sums', 'user/ann');
    assert.deepEqual(registry.resolve('analyst', 'team-a', 's-1'), []);
    await done;
    assert.match(registry.get(accepted.digest)?.inactiveReason ?? '', /gives\\nwrong sums/);
    await assert.rejects(registry.register(accepted, aCaller({ session: 's-2' })), refusal('TEMPER_TOOL_DEMOTED'));
    const again = await aRegistry(records);
    assert.deepEqual(again.resolve('analyst', 'team-a', 's-1'), []);
    await assert.rejects(again.register(accepted, aCaller({ session: 's-2' })), refusal('TEMPER_TOOL_DEMOTED'));
  });
  it('a demotion in one namespace does not affect another', async () => {
    const registry = await aRegistry();
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    await registry.register(accepted, aCaller({ namespace: 'team-b' }));
    await registry.demote(accepted.digest, 'fails', 'system', 'team-a');
    assert.deepEqual(registry.resolve('analyst', 'team-a', 's-1'), []);
    assert.equal(registry.resolve('analyst', 'team-b', 's-1').length, 1);
  });
  it('a demotion overrides a concurrent promotion', async () => {
    const registry = await aRegistry();
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    const promotion = registry.promote(order(accepted.digest));
    await registry.demote(accepted.digest, 'no', 'user/ann');
    await Promise.allSettled([promotion]);
    assert.deepEqual(registry.resolve('analyst', 'team-a', 's-1'), []);
  });
});

describe('stored tools', () => {
  it('the registry restores all tools after a restart', async () => {
    const { records } = await fileStore();
    const registry = await aRegistry(records);
    const kept = anAcceptance(anArtifact('kept'));
    await registry.register(anAcceptance(), aCaller());
    await registry.register(kept, aCaller());
    const tool = await registry.promote(order(kept.digest));
    const again = await aRegistry(records);
    assert.deepEqual(names(again.resolve('analyst', 'team-a', 's-1')), ['double:Session', 'kept:Agent']);
    assert.deepEqual(again.get(kept.digest), tool);
  });
  const edits: Record<string, (document: JsonObject) => void> = {
    'the source': (document) => {
      (((document.spec as JsonObject).artifact as JsonObject).implementation as JsonObject).source =
        'function execute() {}';
    },
    'the description': (document) => {
      ((document.spec as JsonObject).artifact as JsonObject).description = 'Trust me.';
    },
    'the tier': (document) => {
      (document.spec as JsonObject).tier = 'Shared';
    },
    'the contributors': (document) => {
      (document.spec as JsonObject).contributors = [];
    },
    'the description to a lone surrogate': (document) => {
      ((document.spec as JsonObject).artifact as JsonObject).description = '\ud800';
    },
  };
  for (const [what, edit] of Object.entries(edits)) {
    it(`a stored tool is inactive after an edit of ${what}`, async () => {
      const records = memoryRecordStore();
      const registry = await aRegistry(records);
      const accepted = anAcceptance();
      await registry.register(accepted, aCaller());
      const tool = await registry.promote(order(accepted.digest));
      const name = tool.object.slice('tools/'.length);
      const document = (await records.get('tools', name)) as JsonObject;
      edit(document);
      await records.put('tools', name, document);
      const again = await aRegistry(records);
      assert.deepEqual(again.resolve('analyst', 'team-a', 's-1'), []);
      assert.match(again.get(accepted.digest)?.inactiveReason ?? '', /digest|accepted/);
    });
  }
  it('a stored tool without an acceptance on the audit chain is inactive', async () => {
    const [theirs, mine] = [memoryRecordStore(), memoryRecordStore()];
    const registry = await aRegistry(theirs);
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    const tool = await registry.promote(order(accepted.digest));
    const name = tool.object.slice('tools/'.length);
    for (const collection of ['tools', 'evidence'])
      await mine.put(collection, name, (await theirs.get(collection, name)) ?? null);
    const again = await aRegistry(mine);
    assert.deepEqual(again.resolve('analyst', 'team-a', 's-1'), []);
    assert.match(again.get(accepted.digest)?.inactiveReason ?? '', /no acceptance/);
  });
  it('an invalid audit chain cannot be opened', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    await registry.register(anAcceptance(), aCaller());
    const lines = await records.read('audit/records');
    await records.deleteCollection('audit/records');
    for (const line of lines) await records.append('audit/records', { ...(line as JsonObject), actor: 'system' });
    await assert.rejects(openAudit({ records, clock: createFakeClock() }), refusal('TEMPER_AUDIT_CHAIN_INVALID'));
  });
});

describe('uses', () => {
  it('use statistics survive a restart', async () => {
    const { records } = await fileStore();
    const registry = await aRegistry(records);
    const artifact = anArtifact();
    const { digest } = anAcceptance(artifact);
    await registry.register(anAcceptance(artifact), aCaller());
    await Promise.all([
      registry.recordUse(aUse(artifact, { value: 1 }, { milliseconds: 1, rootMessage: 'm-1' })),
      registry.recordUse(aUse(artifact, { value: 2 }, { milliseconds: 3, rootMessage: 'm-2' })),
      registry.recordUse(
        aUse(artifact, { value: 2 }, { milliseconds: 8, rootMessage: 'm-2', succeeded: false, evidence: 'reported' }),
      ),
    ]);
    const expected = {
      totalUses: 3,
      successes: 2,
      failures: 1,
      reportedUses: 1,
      distinctInputs: 2,
      rootMessages: 2,
      sessions: 1,
      agents: 1,
      recordedInputs: { none: 2, observed: 0, reported: 0 },
      unrecorded: {},
      averageMilliseconds: 4,
      successRate: 2 / 3,
      recent: { uses: 3, failures: 1 },
      lastUsedAt: '2026-03-01T09:00:01.000Z',
    };
    assert.deepEqual(await registry.statistics(digest, 'team-a'), expected);
    const again = await aRegistry(records);
    assert.deepEqual(await again.statistics(digest, 'team-a'), expected);
    assert.deepEqual(
      (await again.recordedInputs(digest, 'team-a')).map(({ input }) => input),
      [{ value: 1 }, { value: 2 }],
    );
    assert.equal((await again.statistics(digest, 'team-b')).totalUses, 0);
  });
  it('the use record stores 50 inputs from as many messages as possible, none above 2 MiB', async () => {
    const registry = await aRegistry();
    const artifact = anArtifact();
    const { digest } = anAcceptance(artifact);
    await registry.register(anAcceptance(artifact), aCaller());
    await registry.recordUse(aUse(artifact, { value: 'x'.repeat(2_097_152) }));
    for (let value = 0; value < 60; value += 1)
      await registry.recordUse(aUse(artifact, { value }, { rootMessage: 'loop' }));
    for (const rootMessage of ['m-2', 'm-3'])
      await registry.recordUse(aUse(artifact, { rootMessage }, { rootMessage }));
    const kept = await registry.recordedInputs(digest, 'team-a');
    assert.equal(kept.length, 50);
    assert.equal(new Set(kept.map(({ root }) => root)).size, 3);
    assert.ok(kept.every(({ input }) => JSON.stringify(input).length < 100));
    const { totalUses, unrecorded } = await registry.statistics(digest, 'team-a');
    assert.deepEqual({ totalUses, unrecorded }, { totalUses: 63, unrecorded: { InputTooLarge: 1, StorageFull: 10 } });
  });
  it('an input of a megabyte is stored, and the bytes of a tool are limited', async () => {
    const { records } = await fileStore();
    const registry = await aRegistry(records);
    const artifact = anArtifact();
    const { digest } = anAcceptance(artifact);
    await registry.register(anAcceptance(artifact), aCaller());
    for (let index = 0; index < 20; index += 1) {
      const value = `${index}`.padEnd(1_048_576, 'x');
      await registry.recordUse(aUse(artifact, { value }, { rootMessage: `m-${index}` }));
    }
    const kept = await (await aRegistry(records)).recordedInputs(digest, 'team-a');
    assert.deepEqual(
      kept.map(({ input }) => (input as { value: string }).value.slice(0, 3)),
      Array.from({ length: 15 }, (_, index) => `${index}`.padEnd(3, 'x')),
    );
    assert.deepEqual((await registry.statistics(digest, 'team-a')).unrecorded, { StorageFull: 5 });
  });
  it('a recording is stored beside its input, survives a restart, and is deleted with the session', async () => {
    const { records } = await fileStore();
    const registry = await aRegistry(records);
    const artifact = anArtifact();
    const { digest } = anAcceptance(artifact);
    await registry.register(anAcceptance(artifact), aCaller());
    const call = { name: 'fetch', input: {}, answer: { ok: true, value: 'page' }, evidence: 'observed' } as const;
    const recording = { calls: [call], sandbox: { startTime: 1, seed: '00', answers: [{ call: 1, time: 2 }] } };
    const use = { recording: { ok: true as const, recording }, output: digest };
    const input = { value: 1 };
    for (const rootMessage of ['m-1', 'm-1', 'm-2']) {
      await registry.recordUse(aUse(artifact, input, { ...use, rootMessage }));
    }
    await registry.recordUse(
      aUse(artifact, { value: 2 }, { rootMessage: 'm-3', recording: { ok: false, reason: 'ContainsSecret' } }),
    );
    const again = await aRegistry(records);
    const kept = await again.recordedInputs(digest, 'team-a');
    assert.equal(kept.length, 2, 'one per input and message');
    for (const item of kept) {
      assert.deepEqual(
        { ...item, digest: '', root: '' },
        { digest: '', root: '', input, output: digest, recording, answers: 'observed' },
      );
    }
    const { recordedInputs, unrecorded } = await again.statistics(digest, 'team-a');
    assert.deepEqual(
      { recordedInputs, unrecorded },
      { recordedInputs: { none: 0, observed: 2, reported: 0 }, unrecorded: { ContainsSecret: 1 } },
    );
    await again.closeSession(aCaller());
    assert.deepEqual(await records.list(`uses/team-a/${digest.slice('sha256:'.length)}`), []);
  });
  it('uses of a tool that the agent cannot see are not counted', async () => {
    const registry = await aRegistry();
    const artifact = anArtifact();
    await registry.register(anAcceptance(artifact), aCaller());
    await registry.recordUse(aUse(artifact, { value: 1 }, { agent: 'other' }));
    assert.equal((await registry.statistics(anAcceptance(artifact).digest, 'team-a')).totalUses, 0);
  });
});

describe('closing a session', () => {
  it('closing a session removes only its tools with their uses and inputs, also after a restart', async () => {
    const { records } = await fileStore();
    const registry = await aRegistry(records);
    const artifact = anArtifact();
    const { digest } = anAcceptance(artifact);
    const other = anArtifact('triple');
    await registry.register(anAcceptance(artifact), aCaller({ session: 's-1' }));
    await registry.register(anAcceptance(other), aCaller({ session: 's-10' }));
    await registry.recordUse(aUse(artifact, { value: 1 }));
    const changes: RegistryChange[] = [];
    registry.onChange((change) => changes.push(change));
    await registry.closeSession(aCaller({ session: 's-1' }));
    assert.deepEqual(
      changes.map(({ kind }) => kind),
      ['removed'],
    );
    assert.deepEqual(registry.resolve('analyst', 'team-a', 's-1'), []);
    assert.equal(registry.resolve('analyst', 'team-a', 's-10').length, 1);
    assert.equal((await registry.statistics(digest, 'team-a')).totalUses, 0);
    const again = await aRegistry(records);
    assert.deepEqual(
      again.all().map((tool) => tool.artifact.name),
      ['triple'],
    );
  });
});

describe('a closed session', () => {
  it('a closed session of one agent leaves the tools of another agent with the same session id, also after a restart', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    await registry.register(anAcceptance(), aCaller({ session: 's-1' }));
    await registry.register(anAcceptance(), aCaller({ session: 's-1', agent: 'writer' }));
    await registry.closeSession(aCaller({ session: 's-1' }));
    for (const each of [registry, await aRegistry(records)]) {
      assert.deepEqual(each.resolve('analyst', 'team-a', 's-1'), []);
      assert.deepEqual(names(each.resolve('writer', 'team-a', 's-1')), ['double:Session']);
    }
  });
  it('tools of a closed session stay inactive even when their files are restored and its id is reused', async () => {
    const records = memoryRecordStore();
    const registry = await aRegistry(records);
    await registry.register(anAcceptance(), aCaller());
    const kept = await Promise.all(
      ['tools', 'evidence'].map((part) => records.list(`sessions/team-a_analyst_s-1/${part}`)),
    );
    await registry.closeSession(aCaller({ session: 's-1' }));
    await registry.register(anAcceptance(anArtifact('triple')), aCaller());
    for (const [index, part] of ['tools', 'evidence'].entries()) {
      for (const { name, value } of kept[index] ?? [])
        await records.put(`sessions/team-a_analyst_s-1/${part}`, name, value);
    }
    const again = await aRegistry(records);
    assert.deepEqual(names(again.resolve('analyst', 'team-a', 's-1')), ['triple:Session']);
    assert.match(again.get(anAcceptance().digest)?.inactiveReason ?? '', /no acceptance/);
  });
});

describe('rejected attempts', () => {
  it('the registry stores the last hundred rejected attempts with their class, in printable form', async () => {
    const registry = await aRegistry();
    for (let index = 0; index < 101; index += 1) {
      await registry.recordRejected(
        {
          accepted: false,
          name: `bad\n${index}`,
          gate: 'static',
          code: 'TEMPER_FORGE_STATIC',
          class: 'other',
          message: 'uses eval\u202e',
          details: {},
          gates: [],
        },
        aCaller(),
      );
    }
    const kept = await registry.rejected('analyst', 'team-a');
    assert.equal(kept.length, 100);
    assert.equal(kept[0]?.seq, 2);
    assert.equal(kept[99]?.tool, 'bad\\n100');
    assert.equal(kept[0]?.message, 'uses eval\\u{202e}');
    assert.deepEqual(await registry.rejected('writer', 'team-a'), []);
  });
});

it('forge telemetry counts rejections by class, and an accepted retry is not a terminal rejection', async () => {
  const registry = await aRegistry();
  const refused = (name: string, kind: RefusedTool['class']): RefusedTool => ({
    accepted: false,
    name,
    gate: 'tests',
    code: 'TEMPER_FORGE_TEST_FAILED',
    class: kind,
    message: '',
    details: {},
    gates: [],
  });
  await registry.recordRejected(refused('double', 'shape_check'), aCaller());
  await registry.recordRejected(refused('double', 'other'), aCaller());
  await registry.recordRejected(refused('never', 'other'), aCaller());
  await registry.recordRejected(refused('theirs', 'other'), aCaller({ agent: 'writer' }));
  await registry.register(anAcceptance(), aCaller());
  assert.deepEqual(await registry.telemetry('analyst'), {
    rejections: { shape_check: 1, other: 2 },
    uniqueApproved: 1,
    uniqueTerminalRejections: 1,
  });
});

it('a registry deactivates a stored tool whose name is now that of a built-in tool', async () => {
  const records = memoryRecordStore();
  const registry = await aRegistry(records);
  await registry.register(anAcceptance(), aCaller());
  const clock = createFakeClock();
  const audit = await openAudit({ records, clock });
  const again = await openRegistry({ records, audit, clock, builtIn: new Set(['double']) });
  assert.deepEqual(again.resolve('analyst', 'team-a', 's-1'), []);
});
