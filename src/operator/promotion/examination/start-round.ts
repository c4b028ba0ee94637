import type { Digest } from '../../../lib/canonical.ts';
import { isJsonObject, type Json } from '../../../lib/json.ts';
import type { VerificationWork } from '../../../gateway-api/verification/verification-schemas.ts';
import type { PromotionStage } from '../../../tempering/promotion/promotion-record.ts';
import type { ObservedIn } from '../observed.ts';
import type { PromotionStore } from '../ports.ts';
import { roundWork, runDigest } from './round-work.ts';

/**
 * Gives the pod the next round, and returns the state that says so. After a crash in between the round has its work already, which is
 * the same one unless the replaced version changed; the digest shows that. Throws TEMPER_BUS_*.
 */
export async function startRound(
  store: PromotionStore,
  { record, progress, dependencies, testers }: ObservedIn<'Examining'>,
): Promise<PromotionStage | undefined> {
  if (progress?.kind !== 'round') return undefined;
  const { attempt, agent, session, digest, pod, rounds, tries, deadline, figures } = record;
  const round = rounds.length + 1;
  // Beside the first round, because models take longer than the pod.
  if (round === 1 && testers.length > 0) {
    await store.requestTesters({ agentUid: agent.uid, session, digest, attempt }, 0);
  }
  const work = roundWork(progress.run, { attempt, round }, dependencies);
  const isAssigned = await store.assign(pod.uid, round, work as unknown as Json);
  const given = isAssigned ? runDigest(work) : storedDigest(await store.work(pod.uid, round));
  if (given === undefined) return undefined;
  return { state: 'Examining', tries, pod, deadline, figures, rounds: [...rounds, given] };
}

function storedDigest(work: Json | undefined): Digest | undefined {
  if (!isJsonObject(work) || !isJsonObject(work.artifact) || !Array.isArray(work.cases)) return undefined;
  return runDigest(work as unknown as VerificationWork);
}
