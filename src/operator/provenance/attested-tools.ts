import type { Components } from '../components.ts';
import { isInService } from '../tool/observe.ts';
import { verdictOf } from '../tool/plan.ts';
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
import type { AttestationDeps } from './attestations.ts';

/** The Shared tools of the caches and the Approvals that count for them. */
export function attestedTools({
  tools,
  approvals,
  admissionAge,
}: Pick<Components, 'tools' | 'approvals' | 'admissionAge'>): Pick<AttestationDeps, 'sharedTools' | 'approvalOf'> {
  return {
    sharedTools: () => tools.list().filter((tool) => tool.facts.tier === 'Shared' && isInService(tool)),
    approvalOf(tool) {
      const { metadata, facts } = tool;
      const key = inNamespace(metadata.namespace, facts.digest);
      const verdict = verdictOf({
        tool,
        approvals: approvals.byIndex(TOOL_INDEX.digest, key).map(({ record }) => record),
        admission: admissionAge(),
        contributors: tools.byIndex(TOOL_INDEX.digest, key).flatMap((other) => other.facts.contributors),
      });
      return verdict.decision === 'Approve' ? verdict.approval : undefined;
    },
  };
}
