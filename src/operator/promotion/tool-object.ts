import { API_VERSION, GROUP } from '../../api/names.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import type { EmergentToolSpec, EmergentToolStatus } from '../../api/v1alpha1/emergenttool.ts';
import type { Digest } from '../../lib/canonical.ts';
import { objectName } from '../../tempering/registry/object-name.ts';
import type { RerunFigures } from '../../tempering/promotion/promotion-rules.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { withoutSource } from '../../tempering/withheld/artifact-with-source.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { LeavingTool } from '../hygiene/leaving-tool.ts';
import { replacesAnnotation } from '../hygiene/observe-tools.ts';
import { ownerReference } from '../pods/pod-ownership.ts';

/** Label with the name of the owner; gateways compare it with the name of the object. */
const OWNER_LABEL = `${GROUP}/agent`;

/** The name of the object of a tool at tier Agent. */
export function agentToolName(agent: { namespace: string; name: string }, tool: string, digest: Digest): string {
  return objectName(tool, 'Agent', `${agent.namespace}/${agent.name}`, digest);
}

/** The object of a tool at tier Agent, which is deleted with its agent. */
export function agentToolObject(agent: StoredAgent, tool: RegisteredTool, leaving: LeavingTool | undefined) {
  const { artifact, digest, contributors } = tool;
  const stored = tool.sourceWithheld ? withoutSource(artifact) : { artifact };
  const { namespace, name } = agent.metadata;
  const spec: EmergentToolSpec = { ...stored, digest, tier: 'Agent', contributors: [...contributors] };
  return {
    apiVersion: API_VERSION,
    kind: 'EmergentTool',
    metadata: {
      name: agentToolName({ namespace, name }, artifact.name, digest),
      namespace,
      labels: { [OWNER_LABEL]: name },
      ...(leaving === undefined ? {} : { annotations: replacesAnnotation(leaving.digest, leaving.message) }),
      ownerReferences: [ownerReference(agent)],
    },
    spec,
  };
}

/** The first status of the object. Its next promotion is the one to tier Shared. */
export function verifiedStatus(
  note: string,
  { reportedAnswers }: Pick<RerunFigures, 'reportedAnswers'>,
  { generation, sourceWithheld, now }: { generation: number; sourceWithheld: boolean; now: Date },
): EmergentToolStatus {
  const common = { observedGeneration: generation, lastTransitionTime: `${now.toISOString().slice(0, 19)}Z` };
  const active: Condition = { type: 'Active', status: 'True', reason: 'Verified', message: note, ...common };
  const shareable = sourceWithheld ? WITHHELD_CONDITION : reportedCondition(reportedAnswers);
  const conditions = shareable === undefined ? [active] : [active, { ...shareable, ...common }];
  return { observedGeneration: generation, active: true, promotion: 'Candidate', conditions };
}

const WITHHELD_CONDITION = {
  type: 'Shareable',
  status: 'False',
  reason: 'SourceWithheld',
  message:
    'spec.forge.persistSource of the agent is false, so the object does not contain the source, and an approver must read what he approves; set it to true and forge the tool again',
} as const;

/** Nothing but this condition keeps the kinds of evidence beyond the records in NATS. */
function reportedCondition(reportedAnswers: number) {
  if (reportedAnswers === 0) return undefined;
  const message = `${reportedAnswers} of its re-runs replayed answers that only the pod of its agent reported; they never carry tier Shared`;
  return { type: 'Shareable', status: 'False', reason: 'ReportedAnswers', message } as const;
}
