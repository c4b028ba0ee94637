import { API_VERSION } from '../../../api/names.ts';
import type { ApprovalRequest } from '../../../api/v1alpha1/approvalrequest.ts';
import { sha256 } from '../../../lib/canonical.ts';
import { printable } from '../../../lib/printable.ts';
import type { requestTimes } from '../../../policy/approval-rules.ts';
import { topicsOf } from '../../../tempering/examination/questions.ts';
import { formatFigures } from '../../../tempering/promotion/promotion-messages.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import { MANAGED_LABEL, type StoredAgent } from '../../kube/types.ts';
import type { LeavingTool } from '../../hygiene/leaving-tool.ts';
import { ownerReference } from '../../pods/pod-ownership.ts';
import { promotionFacts, type RequestEvidence } from '../../sharing/request-evidence.ts';

const MAX_SUMMARY = 1_024;
const NAME_CHARACTERS = 8;

/** The name of the request of an attempt. */
export function approvalRequestName({ tool, digest, attempt }: PromotionRecord): string {
  const hash = sha256(`${digest} ${attempt}`).slice('sha256:'.length);
  return `${tool.replaceAll('_', '-')}-${hash.slice(0, NAME_CHARACTERS)}`;
}

/** What the request of a promotion shows of its tool. */
export interface RequestedTool {
  readonly tool: RegisteredTool;
  readonly tainted: boolean;
  readonly claimed: Pick<RequestEvidence, 'uses' | 'usedBy'>;
  /** What the promotion deactivates, because the agent has its maximum of tools. */
  readonly leaving: LeavingTool | undefined;
  /** Of the policy of the agent, from now on. */
  readonly times: ReturnType<typeof requestTimes>;
}

/** The ApprovalRequest for a promotion to tier Agent, which is deleted with its agent. Its summary has no text of an author. Pure. */
export function approvalRequest(
  record: Extract<PromotionRecord, { state: 'AwaitingApproval' }>,
  agent: StoredAgent,
  { tool: { artifact }, tainted, claimed, leaving, times }: RequestedTool,
): ApprovalRequest {
  const { tool, digest, nonce, request, figures, verdicts, questions } = record;
  const { apis } = artifact.requires;
  const needs = apis.length === 0 ? 'it requires no host function' : `it requires ${apis.join(', ')}`;
  const topics = topicsOf(questions);
  const asks = topics.length === 0 ? '' : ` Its examination leaves questions: ${topics.join(', ')}.`;
  const leaves = leaving === undefined ? '' : ` ${leaving.tool} leaves for it: ${leaving.message}.`;
  const summary = `${tool} asks for tier Agent of ${agent.metadata.name}; ${formatFigures(figures)}; ${needs}.${asks}${leaves}`;
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: {
      name: request,
      namespace: agent.metadata.namespace,
      labels: { ...MANAGED_LABEL },
      ownerReferences: [ownerReference(agent)],
    },
    spec: {
      type: 'PromoteTool',
      agent: { name: agent.metadata.name, uid: agent.metadata.uid },
      nonce,
      summary: printable(summary, MAX_SUMMARY),
      risk: apis.includes('fetch') || apis.includes('fs.readFile') ? 'high' : 'medium',
      tool,
      from: 'Session',
      to: 'Agent',
      review: {
        artifact,
        agents: [],
        tainted,
        ...promotionFacts({ figures, verdicts }),
        ...claimed,
        questions: questions.map(({ topic, reason, cases }) => ({
          topic,
          reason,
          cases: cases.map(({ input, expected, got }) => ({
            input: shown(input),
            got: shown(got),
            ...(expected === undefined ? {} : { expected: shown(expected) }),
          })),
        })),
      },
      ...times,
      subject: { promotion: { tool, digest, tier: 'Agent' } },
    },
  };
}

/** The fields are not empty. */
function shown(text: string): string {
  return text === '' ? '–' : text;
}
