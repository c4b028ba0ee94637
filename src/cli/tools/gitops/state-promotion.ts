import type { ChainedRecord } from '../../../audit/port.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, member } from '../../../lib/json.ts';
import type { RecordStore } from '../../../lib/record-store.ts';
import { storedAudit } from '../../../standalone/tool-audit/stored-audit.ts';
import { isListedAction } from '../../../review/listed-actions.ts';
import { sharedObjectName } from '../../../review/gitops/review-of-objects.ts';
import type { ProvenanceReference, RevokedPromotion, ToolReview, UseFigures } from '../../../review/tool-review.ts';
import { hexOf } from '../../../tempering/registry/object-name.ts';
import type { Registry } from '../../../tempering/registry/registry.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import type { ExportableTool } from './gitops-export.ts';

/** The promotion of a tool of the state folder to tier Shared of a cluster. Throws TEMPER_PROMOTION_NOT_READY. */
export async function statePromotion(
  tool: RegisteredTool,
  registry: Registry,
  records: RecordStore,
  chain: readonly ChainedRecord[],
): Promise<ExportableTool> {
  const { digest, artifact, contributors } = tool;
  const { namespace } = tool.owner;
  const object = sharedObjectName(namespace, artifact.name, digest);
  const own = chain.filter((record) => record.subject === digest);
  const revoked = tool.active ? undefined : revocationOf(own, namespace);
  assertShareable(tool, revoked);
  const uses = await usesOf(tool, registry, records);
  const audit = await storedAudit(records, namespace, digest);
  const replaces = registry
    .all()
    .find(
      (other) =>
        other.tier === 'Shared' &&
        other.active &&
        other.owner.namespace === namespace &&
        other.artifact.name === artifact.name &&
        other.digest !== digest,
    );
  return {
    namespace,
    object,
    digest,
    contributors,
    nonce: undefined,
    review: ({ nonce, approvedBy }): ToolReview => ({
      namespace,
      object,
      artifact,
      digest,
      contributors,
      promotion: { from: tool.tier, nonce, approvedBy, ...(revoked === undefined ? {} : { revoked }) },
      ...(replaces === undefined ? {} : { replaces: { artifact: replaces.artifact, digest: replaces.digest } }),
      uses,
      ...(audit === undefined ? {} : { audit }),
      verdicts: tool.verdicts,
      authorModel: tool.authorModel,
      provenance: own.filter(({ action }) => isListedAction(action)).map(referenceOf),
    }),
  };
}

function assertShareable(tool: RegisteredTool, revoked: RevokedPromotion | undefined): void {
  const { artifact, tier, active, inactiveReason, sourceWithheld } = tool;
  const refused = (problem: string): TemperError =>
    new TemperError('TEMPER_PROMOTION_NOT_READY', `"${artifact.name}" ${problem}`);
  if (sourceWithheld) throw refused('has no source in its object; set forge.persistSource and forge it again');
  if (tier === 'Session') throw refused('is at tier Session; a tool is shared after its promotion to tier Agent');
  if (!active && revoked === undefined) {
    throw refused(`is not active: ${inactiveReason ?? 'no reason is recorded'}`);
  }
}

async function usesOf(tool: RegisteredTool, registry: Registry, records: RecordStore): Promise<UseFigures> {
  const { namespace } = tool.owner;
  const statistics = await registry.statistics(tool.digest, namespace);
  const record = await records.get(`uses/${namespace}`, hexOf(tool.digest));
  const agents = member(record, 'agents');
  return {
    total: statistics.totalUses,
    succeeded: statistics.successes,
    reported: statistics.reportedUses,
    distinctInputs: statistics.distinctInputs,
    rootMessages: statistics.rootMessages,
    agents: Array.isArray(agents) ? agents.filter((name: Json) => typeof name === 'string') : [],
  };
}

/** The last demotion, in every namespace or in this one. */
function revocationOf(records: readonly ChainedRecord[], namespace: string): RevokedPromotion | undefined {
  const last = records.findLast(
    ({ action, facts }) => action === 'tool.demoted' && [undefined, namespace].includes(textOf(facts, 'namespace')),
  );
  if (last === undefined) return undefined;
  const reason = textOf(last.facts, 'reason');
  return { by: last.actor, ...(reason === undefined ? {} : { reason }) };
}

function textOf(facts: Json, key: string): string | undefined {
  const value = member(facts, key);
  return typeof value === 'string' ? value : undefined;
}

function referenceOf({ time, action, actor, digest }: ChainedRecord): ProvenanceReference {
  return { time, action, actor, record: digest };
}
