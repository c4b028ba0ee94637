import { Type, type Static } from 'typebox';
import {
  ApprovalSubject,
  Conditions,
  Digest,
  ObservedGeneration,
  RequestNonce,
  Text,
  Uid,
  atomicListOf,
  closed,
  ObjectName,
} from './common.ts';
import type { Resource } from './common.ts';
import { ToolArtifact } from './emergenttool.ts';

const Requirement = Text(300, 'A requirement, such as `api fetch`, `host api.example.com` or `path data/`.');

const Count = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000_000, description });

/** Figures of the operator: runs in a verifier pod, where the author of the tool never was. */
const ReviewedVerification = Type.Object(
  {
    tests: Count('Tests that ran.'),
    failedTests: Count('Tests that failed.'),
    reruns: Count('Recorded inputs that ran again.'),
    successes: Count('Recorded inputs with a valid output.'),
    rootMessages: Count('Different root messages of the valid ones.'),
    observedAnswers: Count('Valid ones with recorded answers that a gateway carried and signed.'),
    reportedAnswers: Count('Valid ones with recorded answers that only a pod reported.'),
  },
  { ...closed, description: 'Observed: the verification before tier Agent.' },
);

const ReviewedUses = Type.Object(
  {
    total: Count('Uses.'),
    succeeded: Count('Successful uses.'),
    reported: Count('Uses that only a pod reported.'),
    distinctInputs: Count('Distinct inputs, counted up to 200.'),
    rootMessages: Count('Root messages, counted up to 200.'),
  },
  { ...closed, description: 'Claimed: the uses that pods of the agents reported. They decide nothing.' },
);

const ReviewedAgent = Type.Object(
  {
    name: Text(253, 'The name of the agent.'),
    uses: Count('Uses.'),
    succeeded: Count('Successful uses.'),
    sessions: Count('Sessions, counted up to 200. 0 when no use was counted since this field exists.'),
    rootMessages: Count('Root messages, counted up to 200.'),
  },
  {
    ...closed,
    description:
      'Claimed: the uses that the pods of one agent reported. The sessions and root messages are those of deliveries of the gateway.',
  },
);

const AuditHead = Type.Object(
  {
    sequence: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Of the last record.' }),
    records: Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Records since the chain began.',
    }),
    digest: Text(128, 'The digest of the chain up to this record.'),
    time: Text(40, 'When the operator signed it, in RFC 3339 format.'),
    recordedAt: Type.Optional(Text(40, 'When the stream stored its last record, in RFC 3339 format.')),
    key: Text(64, 'The id of the key.'),
    signature: Text(128, 'The signature, in base64.'),
  },
  {
    ...closed,
    description:
      'The newest signed head of the audit stream when the request was made. `kubectl temper audit verify --head` reads it.',
  },
);

const ReviewedVerdict = Type.Object(
  {
    model: Text(253, 'The model that reviewed the tool.'),
    approved: Type.Boolean({ description: 'Whether it approved.' }),
    confidencePercent: Type.Integer({ minimum: 0, maximum: 100, description: 'Its confidence.' }),
    promptDigest: Text(128, 'The digest of what it was asked.'),
    citedLines: Type.Array(Type.Integer({ minimum: 0, maximum: 100_000 }), {
      maxItems: 100,
      'x-kubernetes-list-type': 'atomic',
      description: 'The lines that it cited of the tool as judges read it.',
    }),
    reasoning: Text(2_048, 'Its words, which may repeat text of the tool.'),
  },
  { ...closed, description: 'A verdict of a model. It can refuse a tool and never grant one.' },
);

const ExaminationCase = Type.Object(
  {
    input: Text(512, 'The input, as JSON text, without secrets.'),
    expected: Type.Optional(Text(512, 'The output that the check or the tester expects.')),
    got: Text(512, 'What the tool gave.'),
  },
  { ...closed, description: 'A case in which the tool did not do what the check expects.' },
);

const ExaminationQuestion = Type.Object(
  {
    topic: Text(63, 'The check, or `testers`.'),
    reason: Text(512, 'What the check found.'),
    cases: Type.Array(ExaminationCase, {
      maxItems: 12,
      'x-kubernetes-list-type': 'atomic',
      description: 'The first cases.',
    }),
  },
  { ...closed, description: 'A question of the examination.' },
);

/** What a reviewer has to know beyond the tool itself. */
export const PromotionReview = Type.Object(
  {
    artifact: Type.Optional({
      ...ToolArtifact,
      description: 'The tool itself. Only for tier Agent: no object has it before the decision.',
    }),
    object: Type.Optional({
      ...ObjectName,
      description: 'The EmergentTool of the agent, with source, schemas and tests. Absent for tier Agent.',
    }),
    replaces: Type.Optional(
      Type.Object(
        {
          object: { ...ObjectName, description: 'The EmergentTool of the earlier version.' },
          digest: { ...Digest, description: 'The digest of the earlier version.' },
          addedRequirements: atomicListOf(Requirement, 50, 'What only the new version requires.'),
          removedRequirements: atomicListOf(Requirement, 50, 'What only the earlier version requires.'),
        },
        { ...closed, description: 'The last Shared tool with the same name and another digest, in service or not.' },
      ),
    ),
    agents: atomicListOf(Text(253, 'The name of an agent.'), 20, 'Agents that have the tool in service at tier Agent.'),
    tainted: Type.Optional(
      Type.Boolean({
        description:
          'Whether the session of the tool contained untrusted content when the request was made. Only for tier Agent.',
      }),
    ),
    verification: Type.Optional(ReviewedVerification),
    uses: Type.Optional(ReviewedUses),
    usedBy: Type.Optional(
      Type.Array(ReviewedAgent, {
        maxItems: 20,
        'x-kubernetes-list-type': 'atomic',
        description: 'Claimed: who used the tool.',
      }),
    ),
    auditHead: Type.Optional(AuditHead),
    verdicts: Type.Optional(
      Type.Array(ReviewedVerdict, {
        maxItems: 8,
        'x-kubernetes-list-type': 'atomic',
        description: 'The verdicts of the panel that reviewed the tool before tier Agent.',
      }),
    ),
    questions: Type.Optional(
      Type.Array(ExaminationQuestion, {
        maxItems: 16,
        'x-kubernetes-list-type': 'atomic',
        description: 'What the examination of the tool leaves to the approver.',
      }),
    ),
  },
  { ...closed, description: 'Facts for the reviewer of a promotion. Only for type `PromoteTool`.' },
);
export type PromotionReview = Static<typeof PromotionReview>;

export const ApprovalRequestSpec = Type.Object(
  {
    type: Type.Enum(['PromoteTool', 'RaiseTrust', 'ToolCall'], {
      description: 'The type of decision that an approver has to make.',
    }),
    agent: Type.Object(
      { name: ObjectName, uid: Uid },
      { ...closed, description: 'The agent that needs the decision.' },
    ),
    nonce: RequestNonce,
    summary: Text(1024, 'One sentence that describes the request.'),
    risk: Type.Enum(['low', 'medium', 'high', 'critical'], { description: 'The risk of approving the request.' }),
    tool: Type.Optional(Text(63, 'The name of the tool. Shown in lists of requests.')),
    from: Type.Optional(Text(63, 'The current tier or level. Shown in lists of requests.')),
    to: Type.Optional(Text(63, 'The requested tier or level. Shown in lists of requests.')),
    arguments: Type.Optional(
      Text(
        16_384,
        'The arguments of the call as JSON text, without secrets. What is cut states its whole length. Only for type `ToolCall`.',
      ),
    ),
    review: Type.Optional(PromotionReview),
    session: Type.Optional(
      Text(128, 'The session whose turn waits for the decision. Absent when the request parks no turn.'),
    ),
    expiresAt: Type.Optional(
      Text(40, 'When the timeout of the policy passes, in RFC 3339 format. Absent when the request does not expire.'),
    ),
    onTimeout: Type.Optional(
      Type.Enum(['Wait', 'Deny', 'Approve'], { description: 'What happens after `expiresAt`. Absent without it.' }),
    ),
    escalation: Type.Optional(
      Type.Array(
        Type.Object(
          {
            at: Text(40, 'When they are asked, in RFC 3339 format.'),
            to: atomicListOf(Text(253, 'A user, a group or another address.'), 16, 'Who is asked.'),
          },
          { ...closed, description: 'Who is asked at some time.' },
        ),
        {
          maxItems: 8,
          'x-kubernetes-list-type': 'atomic',
          description: 'Who else is asked while the request stays pending.',
        },
      ),
    ),
    subject: ApprovalSubject,
  },
  closed,
);
export type ApprovalRequestSpec = Static<typeof ApprovalRequestSpec>;

export const ApprovalRequestStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    decision: Type.Optional(
      Type.Enum(['Approve', 'Deny', 'Revoke', 'Expired'], {
        description: 'The decision. Absent while the request is pending.',
      }),
    ),
    decidedBy: Type.Optional(Text(253, 'The user who made the decision, or the policy after a timeout.')),
    usedAt: Type.Optional(
      Text(40, 'When the approved call started, in RFC 3339 format. An approval permits one call.'),
    ),
    announcedSteps: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 8,
        description: 'How many steps of `spec.escalation` the operator has announced with Events.',
      }),
    ),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type ApprovalRequestStatus = Static<typeof ApprovalRequestStatus>;

export type ApprovalRequest = Resource<'ApprovalRequest', ApprovalRequestSpec, ApprovalRequestStatus>;
