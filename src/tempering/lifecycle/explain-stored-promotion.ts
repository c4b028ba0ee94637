import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { splitReference } from '../../forge/request.ts';
import type { Digest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, member, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { explainPromotion, type PromotionExplanation } from '../promotion/explain-promotion.ts';
import { promotionRules } from '../promotion/promotion-rules.ts';
import { createPromotionStateStore } from '../promotion/promotion-state-store.ts';
import { fromDocuments } from '../registry/serialization.ts';
import { holdersOf, widestActive } from '../registry/visibility.ts';
import type { RegisteredTool } from '../types.ts';
import { createUseStore } from '../use/use-store.ts';

/** A tool as it is stored: the object, and the evidence beside it. */
export interface StoredToolDocuments {
  tool: Json;
  evidence: Json;
}

/**
 * Why a tool of a state folder does not have the next tier yet, computed from the stored records alone. Undefined for a tool that is
 * inactive, cannot be read, or has the widest tier.
 */
export async function explainStoredPromotion(
  records: RecordStore,
  stored: StoredToolDocuments,
  all: readonly StoredToolDocuments[],
  now: Date,
): Promise<PromotionExplanation | undefined> {
  const tools = all.map(readTool).filter((tool) => tool !== undefined);
  const digest = textAt(stored.tool, ['spec', 'digest']) as Digest;
  const { agent, namespace } = readTool(stored)?.owner ?? { agent: '', namespace: '' };
  const registry = { all: (): RegisteredTool[] => tools };
  const tool = widestActive(registry, { digest, agent, namespace });
  if (tool === undefined || agent === '') return undefined;
  const policy = await policyOf(records, agent);
  const to = tool.tier === 'Session' ? 'Agent' : 'Shared';
  const pins = (tool.artifact.implementation.steps ?? []).flatMap((step) => splitReference(step.tool).digest ?? []);
  const facts = {
    tool,
    holders: holdersOf(tools, { digest, namespace }),
    uses: await createUseStore(records).statistics(digest, namespace),
    storedState: await createPromotionStateStore(records).read({
      digest,
      tool: tool.artifact.name,
      agent,
      namespace,
      to,
    }),
    rules: promotionRules(policy),
    dependencies: pins.map((pin) => widestActive(registry, { digest: pin as Digest, agent, namespace })),
    now,
  };
  return explainPromotion(facts, policy.promotion?.toShared !== undefined);
}

function readTool({ tool, evidence }: StoredToolDocuments): RegisteredTool | undefined {
  const read = fromDocuments('', { tool, evidence });
  return read === undefined ? undefined : { ...read, active: member(member(tool, 'status'), 'active') === true };
}

/** The policy of the last run of the agent. */
async function policyOf(records: RecordStore, agent: string): Promise<TrustPolicySpec> {
  const name = textAt(await records.get('agents', agent), ['spec', 'trustPolicyRef', 'name']);
  const spec = name === '' ? undefined : member(await records.get('trustpolicies', name), 'spec');
  return isJsonObject(spec) ? (spec as unknown as TrustPolicySpec) : {};
}
