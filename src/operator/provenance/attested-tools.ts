import type { Components } from '../components.ts';
import { isInService } from '../tool/observe.ts';
import { verdictOf } from '../tool/plan.ts';
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
import type { AttestationDeps } from './attestations.ts';

/** The Shared tools of the caches and the Approvals that count for them. */
export function attestedTools({
  tools,
  approvals,
  requests,
  admissionAge,
}: Pick<Components, 'tools' | 'approvals' | 'requests' | 'admissionAge'>): Pick<
  AttestationDeps,
  'sharedTools' | 'approvalOf' | 'requestOf'
> {
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
    requestOf({ metadata, facts }) {
      const about = requests.byIndex(TOOL_INDEX.digest, inNamespace(metadata.namespace, facts.digest));
      return about.find(({ spec }) => spec.nonce === facts.requestNonce)?.metadata.name;
    },
  };
}
