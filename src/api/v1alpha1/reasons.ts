/**
 * Every condition type and every reason of the Temper kinds. A condition with another reason is a defect, and so is a reason that no
 * component sets: `test/structure/reasons.test.ts` compares this table with the code.
 */

type Kind = 'Agent' | 'TrustPolicy' | 'EmergentTool' | 'Capability' | 'ApprovalRequest' | 'Approval';

interface ConditionEntry {
  readonly type: string;
  readonly meaning: string;
  /** What each reason means, and how to fix the problem if there is one. */
  readonly reasons: Readonly<Record<string, string>>;
}

const FIELDS_IN_FORCE: ConditionEntry = {
  type: 'FieldsInForce',
  meaning: 'Every field of the spec has its documented effect. Present only when a field has none yet.',
  reasons: {
    FieldsNotInForce:
      'The message names fields of the spec that have no effect yet. Remove them, or keep them for a later version.',
  },
};

const PENDING = 'The operator has not reconciled the object yet.';
const STALLED_MEANING =
  'Only a change of an object ends the fault in Ready. Present only then; kstatus reads it as failed.';

export const CONDITIONS: Readonly<Record<Kind, readonly ConditionEntry[]>> = {
  Agent: [
    {
      type: 'Ready',
      meaning: 'The agent is accepted, and is running or intentionally idle.',
      reasons: {
        Pending: `${PENDING} Also the first five seconds of the start of its first pod.`,
        Running: 'The pod is running and receives messages.',
        Idle: 'The agent is scaled to zero; the next message starts a pod.',
        Starting: 'The pod is being created or is starting.',
        Suspended: 'The agent is suspended. Ready stays True; see Active.',
        TrustPolicyNotFound:
          'The TrustPolicy that the agent refers to does not exist in its namespace. Create it, or change spec.trustPolicyRef.',
        GrantDenied:
          'A grant, a constraint, the autonomy or the priority of the agent exceeds its TrustPolicy. The message names the field. Narrow it, or extend the policy.',
        AgentQuotaExceeded:
          'The TrustPolicy already has its maximum number of agents. Delete an agent, or raise spec.quotas.agents.',
        InvalidSpec: 'The spec is invalid. The message names the field and the rule.',
        Unschedulable: 'No node fits the pod. The message contains the reason of the scheduler.',
        PodRejected:
          'A quota, Pod Security, an admission policy or a webhook rejected the pod or an object that the pod needs. The message contains the error of the API server.',
        PodNameConflict: 'A pod with the same name exists that the operator did not create. Delete that pod.',
        ImagePullFailed: 'An image of the pod cannot be pulled.',
        PodCrashLooping: 'A container of the pod exits repeatedly. The message contains the end of its output.',
        NodeNotReady:
          'The node of the pod does not respond. A new pod with an empty workspace is created 30 seconds after the cluster marks the node as not ready.',
        BusUnavailable: 'NATS is unreachable. Messages wait.',
        AdmissionPolicyMissing:
          'The admission policies that protect agent pods are missing or changed, so the operator creates no new pod. Upgrade, with clusterPrerequisites.enabled, the one release of the chart that installs them.',
      },
    },
    {
      type: 'Reconciling',
      meaning: 'The pod of the agent is starting. Present only then; kstatus reads it as in progress.',
      reasons: { Starting: 'See Ready.' },
    },
    {
      type: 'Stalled',
      meaning: STALLED_MEANING,
      reasons: {
        InvalidSpec: 'See Ready.',
        GrantDenied: 'See Ready.',
        AgentQuotaExceeded: 'See Ready.',
        PodNameConflict: 'See Ready.',
      },
    },
    {
      type: 'Active',
      meaning: 'The agent is not suspended.',
      reasons: {
        Active: 'Neither the agent nor its TrustPolicy is suspended.',
        Suspended: 'spec.suspend of the agent, or the kill switch of its TrustPolicy, is set.',
      },
    },
    {
      type: 'ModelAvailable',
      meaning: 'At least one model of the agent is available.',
      reasons: {
        ModelReady: 'The primary model is available.',
        FallbackInUse: 'The primary model fails; a fallback model is used.',
        ModelUnauthorized: 'The provider rejects the API key. Rotate the key.',
        ModelUnavailable: 'The provider is unavailable. The next message retries it.',
        ModelDenied: 'The TrustPolicy does not allow the model. Change spec.model, or models.allow of the policy.',
      },
    },
    {
      type: 'BudgetAvailable',
      meaning: 'No quota is exhausted.',
      reasons: {
        WithinBudget: 'No quota is exhausted.',
        QuotaNearlyUsed:
          'At least 80 % of a quota of the agent or its TrustPolicy is used. The message names the quota and the end of its window.',
        TokenQuotaExceeded:
          'The token quota of this hour or day is exhausted. The message states when the agent resumes.',
        CostQuotaExceeded:
          'The cost quota of this hour, day or month is exhausted. The message states when the agent resumes.',
      },
    },
    FIELDS_IN_FORCE,
    {
      type: 'CanForge',
      meaning:
        'The agent can forge tools. Present only when spec.forge.enabled is set and no forged tool can be accepted.',
      reasons: {
        JudgeMissing:
          'The TrustPolicy has no judge, so every forged tool is refused. Set spec.models.judge of the policy.',
        JudgeIsAuthor:
          'The judge is a model of the agent, so every forged tool is refused. Set another spec.models.judge of the policy, or permit it with spec.models.judgeMayBeAuthor.',
      },
    },
    {
      type: 'Scheduled',
      meaning: 'The schedule of the agent starts runs. Present only while the last ones failed.',
      reasons: {
        RunsFail:
          'At least five runs in a row failed. The schedule is persistent, so it goes on, 30 seconds after the end of each run. `kubectl temper deadletters` has the causes.',
        TooManyFailures:
          'Five runs in a row failed. `kubectl temper deadletters` has the causes. Correct them; `kubectl temper schedule resume` or any change of the spec of the Agent starts runs again.',
      },
    },
    {
      type: 'Responsive',
      meaning:
        'The pods of the agent work on its messages. Present only when they do not. An agent without messages, a suspended one, and one whose messages all wait for approvals or their repetition do not have it.',
      reasons: {
        HeartbeatMissed:
          'Messages wait, and for three minutes no pod of the agent took one or reported its work. Ready has the cause when the pod does not start; otherwise read the log of the pod and of the gateway.',
      },
    },
    {
      type: 'TrustLevel',
      meaning: 'The level of the agent changed, or a rise waits for an approver. Present only then.',
      reasons: {
        Raised: 'The agent earned a higher level. The message has the requirements that it met.',
        Lowered: 'The agent was lowered by one level: it was idle, failed too often, or its quality was too low.',
        Approved: 'An approver raised the agent.',
        Withdrawn: 'The spec of the agent or of its TrustPolicy changed, so an approved level ended.',
        ApprovalPending: 'The agent meets the requirements of a level that an approver decides about.',
      },
    },
    {
      type: 'Protected',
      meaning: 'Only the operator can create agent pods in the namespace, and no user can exec into or attach to them.',
      reasons: {
        NamespaceProtected:
          'The namespace has the label temper.dev/agents=true and the admission policies are in force.',
        NamespaceNotProtected:
          'Every user who may edit this namespace can act as any agent in it. Label the namespace temper.dev/agents=true.',
        AdmissionPolicyMissing: 'The namespace has the label, but the admission policies are not in force. See Ready.',
      },
    },
  ],
  TrustPolicy: [
    {
      type: 'Ready',
      meaning: 'The policy is in force.',
      reasons: {
        Pending: PENDING,
        Accepted: 'The spec is valid and in force.',
        InvalidSpec:
          'The spec is invalid. The message names the field and the rule. Agents under the policy do not run until the spec is corrected.',
        JudgeMissing: 'The policy has no judge, so no forged tool is accepted. Set spec.models.judge.',
      },
    },
    { type: 'Stalled', meaning: STALLED_MEANING, reasons: { InvalidSpec: 'See Ready.' } },
    {
      type: 'Active',
      meaning: 'The kill switch is off.',
      reasons: {
        Active: 'The kill switch is off.',
        Suspended: 'The kill switch is on. Only a user with the verb `resume` can switch it off.',
      },
    },
    FIELDS_IN_FORCE,
  ],
  EmergentTool: [
    {
      type: 'Active',
      meaning: 'Agents can call the tool.',
      reasons: {
        Accepted: 'The tool passed all gates and is in service.',
        Verified: 'Tier Agent: the tool passed its verification and is in service.',
        Approved: 'Tier Shared: an Approval for exactly this tool exists, and the tool is in service.',
        ApprovalMissing:
          'Tier Shared: no Approval with the digest, the tier and spec.requestNonce counts. The message states why an existing one does not.',
        ApprovalDenied: 'An approver denied the request. A new request has a new nonce.',
        ReportedAnswers:
          'Tier Shared: the promotion to tier Agent in this namespace rests on recorded answers that only the pod of an agent reported. No approval makes up for them.',
        AdmissionPolicyMissing:
          'The admission policies that check approvers are missing or changed, so no Approval counts. Upgrade, with clusterPrerequisites.enabled, the release of the chart that installs them.',
        NotVerified:
          'Tier Agent: nothing shows that the tool was verified, for example after a restore. The agent has to forge it again.',
        InvalidSpec: 'The object is not a valid tool. The message names the rule and the next step.',
        NameTaken:
          'Another tool in service, or a built-in tool, has the name. Demote that tool, or forge this one under another name.',
        Verifying:
          'Tier Shared: approved. The tests run once more in a verifier pod of this cluster; the message states what the run waits for.',
        VerificationFailed:
          'A run of the tests in a verifier pod failed. Have the agent forge a corrected version. A tool that was in service is demoted.',
        DependencyInactive: 'A step calls a forged tool that is not in service at tier Shared. Share that tool first.',
        OwnerNotFound: 'Tier Agent: the agent that owns the tool does not exist.',
        PolicyDenied:
          'Tier Agent: the TrustPolicy of the agent no longer allows what the tool requires. The tool returns when the policy allows it.',
        SourceLost:
          'Tier Agent: the source that spec.forge.persistSource of the agent withholds is lost with the store of NATS or its keys. The tool returns when its agent forges it again.',
        Deactivated:
          'Tier Agent: the agent does not have the tool any more, because of what its tasks or calls showed, or for a new one. The message has the figures. `kubectl temper reactivate` verifies it again.',
        Promoted: 'The tool is in service at tier Shared, as another object. This one is not used meanwhile.',
        Inactive: 'A user demoted the tool, or it was demoted because of its failures. The message states why.',
        Demoted: 'The operator demoted the tool, with an Approval that revokes it. The gateway refuses calls of it.',
        Revoked: 'A user revoked the tool. The gateway refuses calls of the tool.',
      },
    },
    {
      type: 'Shared',
      meaning: 'The tool is in service at tier Shared, as another object. Only at tier Agent.',
      reasons: {
        Promoted: 'The tool is in service at tier Shared.',
        AwaitingApproval: 'An ApprovalRequest, or a Shared object that a user applied, waits for an approver.',
        AgentsMissing:
          'Fewer agents than promotion.toShared.minAgents of the policy have the tool in service at tier Agent.',
        DependencyNotShared: 'A step calls a forged tool that is not in service at tier Shared. Share that tool first.',
        NameTaken: 'Another tool in service has the name. Demote that tool, or forge this one under another name.',
        ApprovalDenied:
          'An approver denied the last request, or the policy after its timeout. The message states when the next one follows.',
        TooManyRequests: 'Five requests of the agent wait for approvers. Decide one of them.',
        PolicyDenied: 'The TrustPolicy of the agent does not permit the promotion, or does not exist.',
        NotShareable: 'The condition Shareable is False. Its message states why.',
      },
    },
    {
      type: 'Shareable',
      meaning: 'The tool can get tier Shared. Present only when it cannot.',
      reasons: {
        ReportedAnswers:
          'Recorded answers that only the pod of the agent reported carried the tool to tier Agent (promotion.toAgent.reportedEvidence). They never carry it to tier Shared.',

        SourceWithheld:
          'spec.forge.persistSource of the agent is false, so the object does not contain the source and the tool can be neither shared nor exported: an approver must read what he approves.',
      },
    },
  ],
  Capability: [
    {
      type: 'Available',
      meaning:
        'Agents can use the capability, as far as the configuration and the objects of the namespace say. No host is asked.',
      reasons: {
        Pending: PENDING,
        Callable: 'Gateways execute calls of the tool.',
        Loadable: 'Agents find the skill, and load its text.',
        CatalogueOnly:
          'Agents find the entry, and can neither call nor load it: a tool without spec.backend, a skill without spec.content, or another type. This is not a fault.',
        EgressDisabled: 'Gateways reach hosts through the egress proxy only. Set egress.enabled of the chart.',
        ConnectionMissing:
          'The connection that the backend or requiredSecrets names does not exist or is not for the namespace. The platform team adds the namespace to it.',
        McpServerMissing:
          'The platform runs no MCP server of this name for the namespace. The platform team adds it to mcpServers of the chart.',
        HostNotPermitted:
          'The connection names another host or port, or is for a private network. Correct the URL, or ask the platform team.',
        CategoryNotAllowed: 'Another grant opens the tools of the category. Use another spec.tool.category.',
        SchemaInvalid: 'A schema of spec.tool cannot be used. The message has the problem.',
        NameTaken: 'A built-in tool or an older Capability has the name. Change spec.tool.name.',
        ToolMissing:
          'requiredTools names a tool that is neither built in nor shared nor of another Capability of the namespace.',
        LimitReached: 'The older Capabilities of the namespace have as many tools as it may have. Delete some.',
        DigestMissing: 'spec.backend.mcp.digest is missing. Set it to what temper mcp manifest prints.',
        BackendNotExecuted: 'Gateways do not execute this kind of backend.',
      },
    },
    {
      type: 'Reconciling',
      meaning:
        'Available waits for something outside of the object. Present only then; kstatus reads it as in progress.',
      reasons: {
        EgressDisabled: 'See Available.',
        ConnectionMissing: 'See Available.',
        McpServerMissing: 'See Available.',
        ToolMissing: 'See Available.',
      },
    },
    {
      type: 'Stalled',
      meaning: 'Only a change of an object ends the fault in Available. Present only then; kstatus reads it as failed.',
      reasons: {
        HostNotPermitted: 'See Available.',
        CategoryNotAllowed: 'See Available.',
        SchemaInvalid: 'See Available.',
        NameTaken: 'See Available.',
        LimitReached: 'See Available.',
        DigestMissing: 'See Available.',
        BackendNotExecuted: 'See Available.',
      },
    },
    FIELDS_IN_FORCE,
  ],
  ApprovalRequest: [
    {
      type: 'Decided',
      meaning: 'An approver decided the request, or nothing is left to decide.',
      reasons: {
        AwaitingApproval:
          'The request waits for an approver. The message states why an existing Approval does not count.',
        Approved:
          'An approver approved the request: the tool has its new tier, the agent its new level, or the call may start. The timeout of the policy approves calls only.',
        Denied:
          'An approver denied the request. A promotion is requested again after the cool-down of the policy, a rise of a level with another version of the Agent or of the TrustPolicy.',
        Revoked: 'The tool was revoked or demoted, or an Approval with the decision Revoke withdrew the request.',
        TimedOut:
          'No approver decided before the timeout of the policy (approvals), which denies the request. A promotion is requested again after its cool-down, a rise of a level with another version of the Agent or of the TrustPolicy.',
        Expired:
          'Nothing is left to decide: the tool was deleted or is out of service, another request asks the same, the rise does not apply any more, or the message of the call has ended.',
      },
    },
    {
      type: 'InGit',
      meaning:
        'The pull request that asks for the approval is merged. Present only while the request is not decided and the policy names a connection.',
      reasons: {
        PullRequestOpened: 'The pull request waits for a review and a merge. The message has its address.',
        PullRequestMerged:
          'A user merged the pull request. The tool is shared when the files are applied to the cluster.',
        PullRequestClosed:
          'A user closed the pull request without a merge, or deleted the branch of a plain Git repository. Deny the request, or reopen the pull request; push the branch again.',
        PullRequestFailed:
          'The pull request could not be opened or read. The message names the cause and the next attempt; correct the connection, its token, or the branch and path of the policy. An Approval on the cluster does not need the pull request.',
      },
    },
    {
      type: 'Reconciling',
      meaning: 'The gateway tries again to open or read the pull request. Absent otherwise, as kstatus defines it.',
      reasons: { PullRequestFailed: 'See InGit.' },
    },
  ],
  Approval: [
    {
      type: 'Effective',
      meaning: 'The decision applies to an object that exists. Only for decisions about promotions.',
      reasons: {
        Applied: 'The decision applies.',
        SubjectNotFound:
          'No request and no tool has the digest, tier and nonce of the Approval. It applies as soon as one exists.',
        NonceMismatch: 'The nonce belongs to another request. Approve the current one.',
        ContributorMayNotApprove: 'The approver contributed to the tool. Another user has to approve it.',
        CreatedTooEarly:
          'The Approval is older than the admission policy that checks approvers, or younger by less than ten seconds. Create it again under another name. The operator deletes one with the annotations of an export, so that a GitOps controller creates it again.',
        Withdrawn: 'A later decision revoked the tool, so the Approval has no effect.',
        RequestTimedOut:
          'The policy denied the request after its timeout, before the Approval existed. Approve the next request.',
      },
    },
    {
      type: 'InGit',
      meaning:
        'The branch that a policy of the namespace names has the revocation. Present only for the decision that takes a tool out of service which the branch has.',
      reasons: {
        RevocationRecorded: 'The branch has the revocation, so a cluster rebuilt from it does not use the tool.',
        RevocationProposed: 'A pull request with the revocation waits for a merge. The message has its address.',
        RevocationRefused:
          'A user closed the pull request without a merge. Reopen it, or remove the files of the tool from the branch.',
        RevocationNotWritten:
          'Git could not be read or written. The message names the cause; correct the connection, its token, or the branch and path of the policy. The gateway tries again each minute.',
      },
    },
  ],
};
