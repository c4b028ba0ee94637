import { API_VERSION } from '../../api/names.ts';
import type { ApprovalRequest, PromotionReview } from '../../api/v1alpha1/approvalrequest.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { sha256 } from '../../lib/canonical.ts';
import { printable } from '../../lib/printable.ts';
import type { requestTimes } from '../../policy/approval-rules.ts';
import { MANAGED_LABEL, type StoredAgent } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import type { RequestEvidence } from './request-evidence.ts';

/** What a request for tier Shared is made of. */
export interface RequestFacts {
  readonly tool: StoredTool;
  readonly agent: StoredAgent;
  readonly nonce: string;
  /** Differs for each request about the tool, and is the same when one request is created twice. */
  readonly attempt: string;
  readonly agents: readonly string[];
  readonly replaced: StoredTool | undefined;
  readonly evidence: RequestEvidence;
  /** Of the policy of the agent, from now on. */
  readonly times: ReturnType<typeof requestTimes>;
}

const MAX_AGENTS = 20;
const MAX_REQUIREMENTS = 50;
const MAX_SUMMARY = 1_024;
const NAME_CHARACTERS = 8;

/** The ApprovalRequest for the promotion of a tool to tier Shared. Pure. */
export function requestObject(facts: RequestFacts): ApprovalRequest {
  const { tool, agent, nonce, agents, times } = facts;
  const { namespace } = tool.metadata;
  const { tool: name, digest, requires } = tool.facts;
  const required = requirementsOf(requires);
  const needs = required.length === 0 ? 'it requires no host function' : `it requires ${required.join(', ')}`;
  const users = `${agents.length} ${agents.length === 1 ? 'agent has' : 'agents have'} it in service`;
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: { name: requestName(facts), namespace, labels: { ...MANAGED_LABEL } },
    spec: {
      type: 'PromoteTool',
      agent: { name: agent.metadata.name, uid: agent.metadata.uid },
      nonce,
      summary: printable(`${name} asks to be shared in ${namespace}; ${users}; ${needs}.`, MAX_SUMMARY),
      risk: riskOf(requires),
      tool: name,
      from: 'Agent',
      to: 'Shared',
      review: reviewOf(facts),
      ...times,
      subject: { promotion: { tool: name, digest, tier: 'Shared' } },
    },
  };
}

function requestName({ tool: { facts }, attempt }: RequestFacts): string {
  const hash = sha256(`${facts.digest} ${attempt}`).slice('sha256:'.length);
  return `${facts.tool.replaceAll('_', '-')}-${hash.slice(0, NAME_CHARACTERS)}`;
}

function reviewOf({ tool, agents, replaced, evidence }: RequestFacts): PromotionReview {
  const required = requirementsOf(tool.facts.requires);
  const earlier = replaced === undefined ? [] : requirementsOf(replaced.facts.requires);
  return {
    object: tool.metadata.name,
    ...(replaced === undefined
      ? {}
      : {
          replaces: {
            object: replaced.metadata.name,
            digest: replaced.facts.digest,
            addedRequirements: required.filter((one) => !earlier.includes(one)),
            removedRequirements: earlier.filter((one) => !required.includes(one)),
          },
        }),
    agents: agents.slice(0, MAX_AGENTS),
    ...evidence,
  };
}

/** What a tool requires, one line each. */
function requirementsOf({ apis, domains, paths }: ToolArtifact['requires']): string[] {
  return [
    ...apis.map((api) => `api ${api}`),
    ...domains.map((host) => `host ${printable(host, 253)}`),
    ...paths.map((path) => `path ${printable(path, 256)}`),
  ].slice(0, MAX_REQUIREMENTS);
}

/** A tool that reaches the network of its callers is more than one that computes. */
function riskOf({ apis }: ToolArtifact['requires']): ApprovalRequest['spec']['risk'] {
  return apis.includes('fetch') ? 'high' : 'medium';
}
