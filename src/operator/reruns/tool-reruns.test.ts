import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { LABELS } from '../../api/cluster.ts';
import type { VerificationWork } from '../../gateway-api/verification/verification-schemas.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { Json } from '../../lib/json.ts';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod } from '../kube/types.ts';
import { Crash } from '../promotion/crash.testing.ts';
import { MemoryPromotions } from '../promotion/memory-promotions.testing.ts';
import { aTool } from '../tool/tool.testing.ts';
import { VerifierPods } from '../verifier/verifier-pods.ts';
import { attemptOf, type RerunProgress } from './rerun-plan.ts';
import { ToolReruns } from './tool-reruns.ts';

const TEMPLATE = { digest: 'sha256:t', labels: {}, spec: {} };
const ARTIFACT = anArtifact('csv_rows');
const TOOL = aTool({ tier: 'Shared', digest: artifactDigest(ARTIFACT), requestNonce: 'n'.repeat(16) });
const RULES = promotionRules({});

function aPod(name: string): Pod {
  const annotations = { 'temper.dev/template-digest': TEMPLATE.digest };
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  return {
    metadata: { name, namespace: 'temper-system', uid: `uid-${name}`, resourceVersion: '1', annotations },
    status,
  };
}

/** What outlives an operator. */
function aCluster() {
  const clock = new FakeClock();
  const memory = new MemoryPromotions();
  memory.inputs = [1, 2].map((value) => ({
    digest: TOOL.facts.digest,
    root: `root-${value}`,
    input: { value },
    answers: 'none' as const,
  }));
  const pods = new Store<Pod>();
  for (const name of ['v-1', 'v-2', 'v-3', 'v-4', 'v-5']) pods.set(aPod(name));
  const kube = {
    async get() {
      return { metadata: TOOL.metadata, spec: { artifact: ARTIFACT } };
    },
    async patch(_type: object, { name }: { name: string }, patch: { metadata: { labels: Record<string, string> } }) {
      const before = pods.get(`temper-system/${name}`);
      if (before === undefined) throw new Error('the test has no such pod');
      const metadata = { ...before.metadata, labels: patch.metadata.labels, resourceVersion: '2' };
      const after = { ...before, metadata };
      pods.set(after);
      return after;
    },
  };
  return { clock, memory, pods, kube };
}

/** A new operator process over the cluster. */
function anOperator({ clock, memory, pods, kube }: ReturnType<typeof aCluster>, crash = new Crash(Infinity, false)) {
  const client = crash.wrap(kube) as unknown as KubeClient;
  const cache = new Cache([pods]);
  const verifierPods = new VerifierPods({ client, pods: cache, template: TEMPLATE, max: 5, onDemand: () => undefined });
  const reruns = new ToolReruns({ client, clock, store: crash.wrap(memory), verifierPods });
  reruns.resume([TOOL]);
  verifierPods.listed();
  return { reruns, verifierPods };
}

const order = { cause: 'Approval', attempt: attemptOf(TOOL) } as const;
const stepOf = ({ reruns }: ReturnType<typeof anOperator>, cause: 'Approval' | 'Schedule' = 'Approval') =>
  reruns.step(TOOL, { order: { ...order, cause }, rules: RULES, agentUids: ['u-a'] }, NEVER_ABORTED);

/** Sends what an honest pod sends for its work. */
function answer(memory: MemoryPromotions, result = (value: number): number => value * 2): void {
  for (const [uid, work] of memory.works) {
    const { attempt, cases } = work as unknown as VerificationWork;
    const outputs = cases.map(({ input }) => {
      const output = { ok: true, output: { result: result(Number(input['value'])) } };
      return [output, output];
    });
    memory.sent.set(uid, { attempt, round: 0, outputs } as unknown as Json);
  }
}

const resultOf = (progress: RerunProgress) =>
  progress.kind === 'ended' ? [progress.verification.result, progress.verification.reruns] : progress.kind;

describe('the re-run of a tool', () => {
  it('a pod gets tests and recorded inputs without expected outputs, and its outputs decide', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    assert.equal((await stepOf(operator)).kind, 'waiting');
    const [work] = [...cluster.memory.works.values()];
    assert.doesNotMatch(JSON.stringify(work), /expectedOutput/);
    assert.equal((await stepOf(operator)).kind, 'waiting', 'without outputs nothing is decided');
    answer(cluster.memory);
    assert.deepEqual(resultOf(await stepOf(operator)), ['Passed', 2]);
  });

  it('wrong outputs fail the run, and a scheduled run takes no reported inputs', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await stepOf(operator, 'Schedule');
    answer(cluster.memory, () => 0);
    const progress = await stepOf(operator, 'Schedule');
    assert.deepEqual(resultOf(progress), ['Failed', 0]);
    assert.match(progress.kind === 'ended' ? (progress.problem ?? '') : '', /1 of 1 tests failed/);
  });

  it('an operator that is killed at any call leaves one run, which the next one ends', async () => {
    let crashes = 0;
    for (let call = 1; call <= 12; call += 1) {
      for (const isAfterEffect of [false, true]) {
        const cluster = aCluster();
        const first = anOperator(cluster, new Crash(call, isAfterEffect));
        for (let step = 0; step < 3; step += 1) {
          await stepOf(first).catch(() => (crashes += 1));
          if (step === 1) answer(cluster.memory);
        }
        const second = anOperator(cluster);
        await stepOf(second);
        answer(cluster.memory);
        assert.deepEqual(resultOf(await stepOf(second)), ['Passed', 2]);
        const assigned = cluster.pods.list().filter(({ metadata }) => metadata.labels?.[LABELS.verification]);
        assert.equal(assigned.length, 1, `killed at call ${call}: one pod has the run`);
      }
    }
    assert.ok(crashes > 10, 'the operators were killed');
  });

  it('pods without a usable result are replaced, and after three of them the tool waits for an hour', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    for (let run = 0; run < 3; run += 1) {
      await stepOf(operator);
      for (const uid of cluster.memory.works.keys()) cluster.memory.sent.set(uid, { approved: true });
      await stepOf(operator);
    }
    const waiting = await stepOf(operator);
    assert.match(waiting.kind === 'waiting' ? waiting.message : '', /3 runs ended without a result.*another form/);
    assert.equal(cluster.memory.works.size, 0);
    await cluster.clock.advance(61 * 60_000);
    await stepOf(operator);
    answer(cluster.memory);
    assert.deepEqual(resultOf(await stepOf(operator)), ['Passed', 2]);
  });

  it('a pod that was deleted or is late is replaced, and a run that is not needed any more frees its pod', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await stepOf(operator);
    const [used] = cluster.pods.list().filter(({ metadata }) => metadata.labels?.[LABELS.verification]);
    cluster.pods.delete(`temper-system/${used?.metadata.name}`);
    assert.match(await message(stepOf(operator)), /the run starts again: .* was deleted/);
    await stepOf(operator);
    await cluster.clock.advance(7 * 60_000);
    assert.match(await message(stepOf(operator)), /no outputs in time/);
    await stepOf(operator);
    const uid = [...cluster.memory.works.keys()][0] ?? '';
    assert.ok(operator.verifierPods.isInUse(uid));
    await operator.reruns.release('team-a/' + TOOL.metadata.name);
    assert.ok(!operator.verifierPods.isInUse(uid));
    assert.deepEqual([cluster.memory.works.size, operator.reruns.waiting().length], [0, 0]);
  });
});

async function message(progress: Promise<RerunProgress>): Promise<string> {
  const found = await progress;
  return found.kind === 'waiting' ? found.message : found.kind;
}
