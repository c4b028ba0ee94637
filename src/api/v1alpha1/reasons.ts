/** Every condition and every reason an object of ours can show. A condition with another reason is a defect. */

type Kind = 'Agent' | 'TrustPolicy' | 'EmergentTool' | 'Capability' | 'ApprovalRequest' | 'Approval';

interface ConditionEntry {
  readonly type: string;
  readonly meaning: string;
  /** What each reason says about the object, and what to do where something is wrong. */
  readonly reasons: Readonly<Record<string, string>>;
}

export const CONDITIONS: Readonly<Record<Kind, readonly ConditionEntry[]>> = {
  Agent: [
    {
      type: 'Ready',
      meaning: 'The agent is accepted, and runs or is idle on purpose.',
      reasons: {
        Running: 'Its pod runs and asks for messages.',
        Idle: 'No pod, on purpose; the next message starts one.',
        Starting: 'Its pod is being made.',
        Suspended: 'It was told to stop. Ready stays True; see Active.',
        TrustPolicyNotFound:
          'The policy it names does not exist in its namespace. Create it, or change spec.trustPolicyRef.',
        GrantDenied: 'It asks for more than its policy allows. Narrow the grant, or raise the policy.',
        AgentQuotaExceeded: 'As many agents as its policy allows exist. Delete one, or raise spec.quotas.agents.',
        InvalidSpec: 'Its spec breaks a rule that the message names.',
        Unschedulable: 'No node has room for its pod. The message has the words of the scheduler.',
        PodRejected:
          'A quota, Pod Security, an admission rule or a webhook refused its pod or what the pod relies on. The message has the words of the API server.',
        PodNameTaken: 'A pod of that name exists that the operator did not make. Remove it.',
        ImagePullFailed: 'The sandbox image cannot be pulled.',
        PodCrashLooping: 'A container of its pod exits again and again. The message has its last words.',
        NodeNotReady:
          'The node of its pod does not answer. The next pod is made half a minute after the cluster has noticed, with an empty workspace.',
        BusUnavailable: 'The bus cannot be reached. Messages wait.',
        GuardMissing:
          'The admission policies that keep strangers away from agent pods are missing or changed, so no new pod is made. Install the chart again with clusterPrerequisites.enabled, in the one release of the cluster that has it.',
      },
    },
    {
      type: 'Active',
      meaning: 'The agent may work.',
      reasons: {
        Active: 'Nothing stops it.',
        Suspended: 'spec.suspend of the agent, or the kill switch of its policy, stops it.',
      },
    },
    {
      type: 'ModelAvailable',
      meaning: 'At least one of its models can be asked.',
      reasons: {
        ModelReady: 'The primary model answers.',
        FallbackInUse: 'The primary model fails; a fallback answers.',
        ModelUnauthorized: 'The provider refuses the key. Rotate it.',
        ModelUnavailable: 'The provider cannot serve now. The message says when it is tried again.',
        ModelNotFound: 'The provider has no such model. Correct spec.model.',
        ModelDenied: 'The policy does not allow the model. Change spec.model, or models.allow of the policy.',
      },
    },
    {
      type: 'BudgetAvailable',
      meaning: 'No quota is used up.',
      reasons: {
        WithinBudget: 'Every quota has room.',
        TokenQuotaExceeded: 'The tokens of this hour or day are used. The message says when it goes on.',
        CostQuotaExceeded: 'The money of this hour, day or month is used. The message says when it goes on.',
        CallQuotaExceeded: 'The tool calls of this minute are used.',
        NetworkQuotaExceeded: 'The network bytes of this hour are used.',
      },
    },
    {
      type: 'Fenced',
      meaning: 'Nobody but the operator can make or enter agent pods in the namespace.',
      reasons: {
        NamespaceFenced: 'The namespace has the label temper.dev/agents=true and the fence is in force.',
        NamespaceNotFenced:
          'Whoever may edit this namespace can act as every agent in it. Label it temper.dev/agents=true.',
        GuardMissing: 'The namespace has the label, but the fence is not in force. See Ready.',
      },
    },
  ],
  TrustPolicy: [
    {
      type: 'Ready',
      meaning: 'The policy is in force.',
      reasons: {
        Accepted: 'Every rule of it could be read.',
        InvalidSpec: 'It breaks a rule that the message names. Its agents may do nothing until it is corrected.',
        JudgeMissing: 'No judge is named, so no forged tool is accepted. Set spec.models.judge.',
      },
    },
    {
      type: 'Active',
      meaning: 'The agents under it may work.',
      reasons: {
        Active: 'The kill switch is off.',
        Suspended: 'The kill switch is on. Clearing it needs the verb resume.',
      },
    },
  ],
  EmergentTool: [
    {
      type: 'Active',
      meaning: 'Agents can call the tool.',
      reasons: {
        Verified: 'Its digest, its tests and, where needed, its approval were checked.',
        AwaitingVerification: 'Its tests are about to run again where its author never was.',
        AwaitingApproval: 'A person has to approve it.',
        VerificationFailed: 'Its tests or recorded inputs gave another result. The message names the case.',
        DigestMismatch: 'Its digest is not that of its artifact.',
        NameTaken: 'Another tool visible to the same agents has its name.',
        DependencyMissing: 'A tool that one of its steps pins is not active.',
        Demoted: 'A person, or its failures, took it out.',
        Revoked: 'Its approval was taken back.',
        SourceMissing: 'Its source was not kept, so it cannot be shared or restored.',
      },
    },
  ],
  Capability: [
    {
      type: 'Available',
      meaning: 'Agents can use the capability.',
      reasons: {
        Available: 'All that it needs is there.',
        SecretMissing: 'A connection it requires is not configured for this namespace.',
        ToolMissing: 'A tool it requires does not exist.',
        NameTaken: 'Another tool of the namespace has the name of its tool.',
        BackendUnreachable: 'Its server cannot be reached. The message says since when.',
        CatalogueOnly: 'It has no backend: it can be found, not called.',
        InvalidSpec: 'Its spec breaks a rule that the message names.',
      },
    },
  ],
  ApprovalRequest: [
    {
      type: 'Decided',
      meaning: 'A person has answered.',
      reasons: {
        Waiting: 'Nobody has answered yet.',
        Approved: 'A person said yes.',
        Denied: 'A person said no.',
        Revoked: 'The yes was taken back.',
        Expired: 'Nobody answered in time, and the policy says that means no.',
        Superseded: 'What it asks about has changed; there is a new request.',
      },
    },
  ],
  Approval: [
    {
      type: 'Effective',
      meaning: 'The answer counts.',
      reasons: {
        Effective: 'It binds exactly what waits.',
        NonceMismatch: 'It carries the nonce of another request.',
        SubjectMismatch: 'What it binds is not what waits.',
        NotAuthorized: 'Whoever wrote it may not approve this.',
        TooEarly: 'It was written before the rule that guards approvals was in force. Write it again.',
        Contributor: 'Whoever wrote it took part in the tool.',
        Used: 'It was for one use, which has happened.',
        Superseded: 'A later answer counts instead.',
      },
    },
  ],
};
