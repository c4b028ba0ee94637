import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { Pod } from '../kube/types.ts';
import { planVerifiers, readyVerifiers, type VerifierDemand } from './plan.ts';

const isUsed = (uid: string): boolean => uid.startsWith('used');
const DEMAND: VerifierDemand = { warm: 1, max: 3, waiting: 0, digest: 'd', isInUse: isUsed, isClaimed: isUsed };

function aPod(uid: string, { attempt, digest = 'd', phase = 'Running', ready = true } = {} as PodFields): Pod {
  const labels = attempt === undefined ? {} : { [LABELS.verification]: attempt };
  const metadata = {
    name: uid,
    namespace: 'temper-system',
    uid,
    labels,
    annotations: { [ANNOTATIONS.template]: digest },
  };
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
  return { metadata, status: { phase, conditions } };
}

interface PodFields {
  attempt?: string;
  digest?: string;
  phase?: string;
  ready?: boolean;
}

const names = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name);

describe('the plan of verifier pods', () => {
  it('one warm pod is kept, and pods of promotions that wait are created up to the maximum', () => {
    assert.deepEqual(planVerifiers([], DEMAND), { remove: [], create: 1 });
    assert.equal(planVerifiers([aPod('warm')], DEMAND).create, 0);
    assert.equal(planVerifiers([aPod('warm')], { ...DEMAND, waiting: 1 }).create, 1);
    const used = [aPod('used-1', { attempt: 'a' }), aPod('used-2', { attempt: 'b' })];
    assert.equal(planVerifiers(used, { ...DEMAND, waiting: 9 }).create, 1);
  });

  it('a pod serves one verification: a used pod is deleted when its verification has ended', () => {
    const plan = planVerifiers([aPod('ended', { attempt: 'a' }), aPod('used', { attempt: 'b' }), aPod('warm')], DEMAND);
    assert.deepEqual(names(plan.remove), ['ended']);
  });

  it('before the promotions are listed, an assigned pod stays, and a free one is the warm one', () => {
    const unlisted = { ...DEMAND, isInUse: () => true };
    const plan = planVerifiers([aPod('assigned', { attempt: 'a' }), aPod('warm')], unlisted);
    assert.deepEqual(plan, { remove: [], create: 0 });
  });

  it('ended pods, pods of another template and surplus pods are deleted, the unready ones first', () => {
    const pods = [
      aPod('old', { digest: 'x' }),
      aPod('failed', { phase: 'Failed' }),
      aPod('slow', { ready: false }),
      aPod('warm'),
    ];
    const plan = planVerifiers(pods, DEMAND);
    assert.deepEqual(names(plan.remove), ['old', 'failed', 'slow']);
    assert.equal(plan.create, 0);
  });

  it('only a Ready pod of the template without a verification takes one', () => {
    const pods = [
      aPod('unready', { ready: false }),
      aPod('old', { digest: 'x' }),
      aPod('assigned', { attempt: 'a' }),
      aPod('used-now'),
      aPod('free'),
    ];
    assert.deepEqual(names(readyVerifiers(pods, DEMAND)), ['free']);
  });
});
