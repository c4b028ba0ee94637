import type { Tier } from '../../api/v1alpha1/common.ts';
import type { AcceptedTool, ForgeCaller, JudgeVerdict } from '../../forge/types.ts';
import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { artifactDigest } from './serialization.ts';
import { objectPath, type ToolLimits } from './visibility.ts';
import type { RegisteredTool } from '../types.ts';

export interface PromotionOrder {
  digest: Digest;
  owner: { agent: string; namespace: string };
  to: 'Agent' | 'Shared';
  /** Verdicts of the panel, added to those of the tool. */
  verdicts: readonly JudgeVerdict[];
  actor: string;
  limits: ToolLimits;
  /** Omit the source from the stored object. */
  sourceWithheld: boolean;
}

/** Creates the session tool of an accepted forge. Throws when no judge approved it. */
export function sessionTool(accepted: AcceptedTool, caller: ForgeCaller, acceptedAt: string): RegisteredTool {
  const { artifact, digest, verdict } = accepted;
  if (artifactDigest(artifact) !== digest) {
    throw new TemperError(
      'TEMPER_INTERNAL',
      `the artifact of "${artifact.name}" does not have the digest it was accepted with`,
    );
  }
  if (verdict === undefined)
    throw new TemperError(
      'TEMPER_JUDGE_UNAVAILABLE',
      `no judge reviewed "${artifact.name}"; name a judge in TrustPolicy spec.models.judge`,
    );
  if (!verdict.approved)
    throw new TemperError('TEMPER_JUDGE_REFUSED', `the judge refused "${artifact.name}": ${verdict.reasoning}`);
  const { agent, namespace, session, authorModel } = caller;
  const owner = { agent, namespace, session };
  return {
    object: objectPath(artifact.name, 'Session', owner, digest),
    artifact,
    digest,
    tier: 'Session',
    owner,
    contributors: [`agent/${agent}`],
    verdicts: [verdict],
    authorModel,
    sourceWithheld: false,
    acceptedAt,
    active: true,
  };
}

/** The tool one tier below, and every object that the promoted one replaces. */
export function resolvePromotion(
  order: PromotionOrder,
  actives: readonly RegisteredTool[],
): { lower: RegisteredTool; replaces: RegisteredTool[] } {
  const from: Tier = order.to === 'Agent' ? 'Session' : 'Agent';
  const same = actives.filter(
    ({ digest, owner }) => digest === order.digest && owner.namespace === order.owner.namespace,
  );
  const lower = same.find(({ tier, owner }) => tier === from && owner.agent === order.owner.agent);
  if (lower === undefined) {
    throw new TemperError(
      'TEMPER_PROMOTION_NOT_READY',
      `no active tool ${order.digest} at tier ${from} belongs to agent "${order.owner.agent}"; a tool is promoted one tier at a time`,
    );
  }
  const replaces =
    order.to === 'Agent'
      ? same.filter(({ tier, owner }) => tier === 'Session' && owner.agent === order.owner.agent)
      : same.filter(({ tier }) => tier !== 'Shared');
  return { lower, replaces };
}

/** The new object one tier up; the old object stays unchanged. */
export function promotedTool(lower: RegisteredTool, order: PromotionOrder, acceptedAt: string): RegisteredTool {
  const sourceWithheld = lower.sourceWithheld || order.sourceWithheld;
  if (order.to === 'Shared' && sourceWithheld) {
    throw new TemperError(
      'TEMPER_PROMOTION_NOT_READY',
      `"${lower.artifact.name}" has no source in its stored object, so it stays at tier Agent; set forge.persistSource and forge it again`,
    );
  }
  return {
    ...lower,
    object: objectPath(lower.artifact.name, order.to, lower.owner, lower.digest),
    tier: order.to,
    verdicts: [...lower.verdicts, ...order.verdicts],
    sourceWithheld,
    acceptedAt,
  };
}
